import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmod, chown, lchown, link, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { OperatorError } from '../../src/errors.js';
import { postgresAccount, runCommand, runningAsRoot } from '../../src/embedded-postgres/command.js';
import { chooseDataDirectory } from '../../src/embedded-postgres/cluster/data-directory.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { skipWithout } from '../support/programs/skip.js';
import { acquire as acquirePostgres, releaseAll } from './users.js';

/** An account that is neither root nor the one that PostgreSQL runs as. */
const STRANGER = { uid: 12_345, gid: 12_345 };

const SECRET = 'only root may read or write this\n';

describe('the embedded PostgreSQL and other accounts of the machine', function () {
  this.timeout(60_000);

  const acquire = (dataDir: string) => acquirePostgres({ packageRoot: dataDir, dataDir });

  afterEach(releaseAll);

  describe('as root', () => {
    let victim: string;

    before(function () {
      if (!runningAsRoot()) skipWithout('the rights of root', this);
    });

    beforeEach(async () => {
      victim = join(await temporaryFolder(), 'victim');
      await writeFile(victim, SECRET, { mode: 0o600 });
    });

    /** Nothing was done to the file that a link led to. */
    async function assertUntouched(): Promise<void> {
      const { uid, mode } = await stat(victim);
      assert.deepEqual([await readFile(victim, 'utf8'), uid, mode & 0o777], [SECRET, 0, 0o600]);
    }

    async function folderOf(account: { uid: number; gid: number }): Promise<string> {
      const folder = join(await openFolder(), 'data');
      await mkdir(folder, { mode: 0o755 });
      await chown(folder, account.uid, account.gid);
      return folder;
    }

    it('a data directory of another account is refused, and nothing in it is touched', async () => {
      const dataDir = await folderOf(STRANGER);
      for (const name of ['postgresql.log', 'pg_hba.conf', 'port.new', 'password']) {
        await symlink(victim, join(dataDir, name));
      }
      await assert.rejects(acquire(dataDir), {
        name: 'OperatorError',
        message:
          `The data directory ${dataDir} cannot be used by root: ${dataDir} belongs to the account with uid 12345, so that ` +
          'others could replace what root writes. Set DATA_DIR to a directory that only root can change, also by its ' +
          `parents, or, if you trust what is in it: chown root ${dataDir}`,
      });
      await assertUntouched();
      assert.deepEqual((await readdir(dataDir)).sort(), ['password', 'pg_hba.conf', 'port.new', 'postgresql.log']);
    });

    it('a data directory that others may write to is refused', async () => {
      for (const account of [{ uid: 0, gid: 0 }, await postgresAccount()]) {
        const dataDir = await folderOf(account);
        await chmod(dataDir, 0o775);
        await assert.rejects(
          acquire(dataDir),
          (error) => error instanceof OperatorError && error.message.endsWith(`chmod go-w ${dataDir}`),
        );
        assert.deepEqual(await readdir(dataDir), []);
      }
    });

    describe('in a folder of another account, or one that others may write to', () => {
      let folder: string;
      let target: string;

      beforeEach(async () => {
        folder = await folderOf({ uid: 0, gid: 0 });
        target = join(await temporaryFolder(), 'private');
        await mkdir(target, { mode: 0o700 });
        await symlink(target, join(folder, 'planted'));
      });

      async function assertRefused(dataDir: string, remedy: string): Promise<void> {
        await assert.rejects(
          acquire(dataDir),
          (error) => error instanceof OperatorError && error.message.endsWith(`: ${remedy}`),
        );
        const { mode } = await stat(target);
        assert.deepEqual([await readdir(target), mode & 0o777], [[], 0o700]);
        assert.deepEqual(await readdir(folder), ['planted']);
      }

      it('a data directory is refused, and a planted link to a private folder is not followed', async () => {
        await chown(folder, STRANGER.uid, STRANGER.gid);
        for (const name of ['planted', 'planted/new', 'new', 'new/newer']) {
          await assertRefused(join(folder, name), `chown root ${folder}`);
        }
        await chown(folder, 0, 0);
        await chmod(folder, 0o775);
        for (const name of ['planted', 'new']) await assertRefused(join(folder, name), `chmod go-w ${folder}`);
      });

      it('a link is followed only when it belongs to root, also in a sticky folder', async () => {
        await chmod(folder, 0o1777);
        const planted = join(folder, 'planted');
        await lchown(planted, STRANGER.uid, STRANGER.gid);
        for (const name of ['planted', 'planted/new'])
          await assertRefused(join(folder, name), `chown -h root ${planted}`);
        await lchown(planted, 0, 0);
        const [open, within] = [join(target, '..'), join(planted, 'new')];
        for (const way of [open, target]) await chmod(way, 0o755);
        const choice = { packageRoot: folder, isRoot: true, systemDirectory: folder };
        assert.equal((await chooseDataDirectory({ ...choice, configured: within })).path, join(target, 'new'));
        await symlink('itself', join(folder, 'itself'));
        await assert.rejects(acquire(join(folder, 'itself')), /The data directory .*itself cannot be used: ELOOP/);
        await chown(open, STRANGER.uid, STRANGER.gid);
        await assert.rejects(
          acquire(within),
          (error) => error instanceof OperatorError && error.message.endsWith(`: chown root ${open}`),
        );
      });
    });

    it('a relative link leads from the folder that it is really in, also on the way over another link', async () => {
      const folder = await openFolder();
      const [disk, strangers] = [join(folder, 'mnt', 'disk'), join(folder, 'mnt', 'strangers')];
      for (const path of [disk, strangers]) await mkdir(path, { recursive: true });
      await chown(strangers, STRANGER.uid, STRANGER.gid);
      await symlink(disk, join(folder, 'data'));
      await symlink('../strangers', join(disk, 'catalog'));
      for (const name of ['data/catalog/new', 'data/catalog/new/newer']) {
        await assert.rejects(
          acquire(join(folder, name)),
          (error) => error instanceof OperatorError && error.message.endsWith(`: chown root ${strangers}`),
        );
      }
      assert.deepEqual([(await readdir(folder)).sort(), await readdir(strangers)], [['data', 'mnt'], []]);
    });

    it('a log that is a link is not followed in a directory of the account that PostgreSQL runs as', async () => {
      for (const plant of [symlink, link]) {
        const dataDir = await folderOf(await postgresAccount());
        const log = join(dataDir, 'postgresql.log');
        await plant(victim, log);
        await assert.rejects(acquire(dataDir), {
          name: 'OperatorError',
          message:
            `${log} is a link or no regular file, and the embedded PostgreSQL follows none. Find out who put it there, ` +
            'remove it, and try again.',
        });
        await assertUntouched();
      }
    });

    it('a file of rules that is a link is replaced, and what it led to is left alone', async () => {
      const dataDir = await folderOf(await postgresAccount());
      await symlink(victim, join(dataDir, 'pg_hba.conf'));
      await (await acquire(dataDir)).release();
      assert.equal(await readFile(join(dataDir, 'pg_hba.conf'), 'utf8'), 'local all all trust\n');
      await assertUntouched();
    });

    it('a file of the cluster that is a link is not read', async () => {
      const dataDir = await folderOf({ uid: 0, gid: 0 });
      const version = join(dataDir, 'postgresql', 'PG_VERSION');
      await mkdir(join(dataDir, 'postgresql'));
      await symlink(victim, version);
      await assert.rejects(
        acquire(dataDir),
        (error) => error instanceof OperatorError && error.message.startsWith(`${version} is a link`),
      );
      await assertUntouched();
    });

    it('other accounts cannot reach the socket', async () => {
      const dataDir = await openFolder();
      const postgres = await acquire(dataDir);
      try {
        const script = `require('net').connect(${JSON.stringify(socketIn(postgres.address.host))})
          .on('connect', () => console.log('connected')).on('error', ({ code }) => console.log(code))`;
        const asAccount = async (account: typeof STRANGER) =>
          (await runCommand(process.execPath, ['-e', script], { account, timeoutMs: 10_000 })).output.trim();
        const { exitCode } = await runCommand(process.execPath, ['-e', '0'], { account: STRANGER, timeoutMs: 10_000 });
        assert.equal(exitCode, 0, 'the control: the account can run the program');
        assert.equal(await asAccount(STRANGER), 'EACCES');
      } finally {
        await postgres.release();
      }
    });
  });

  it('listens on no port of the network', async () => {
    const postgres = await acquire(await openFolder());
    try {
      const { rows } = await query(postgres.address, 'show listen_addresses');
      assert.deepEqual(rows, [{ listen_addresses: '' }]);
    } finally {
      await postgres.release();
    }
  });

  it('can be reached in a folder whose path is longer than the address of a socket', async () => {
    const dataDir = join(await openFolder(), 'long '.repeat(30));
    const postgres = await acquire(dataDir);
    try {
      assert.deepEqual((await query(postgres.address, 'select 1 as one')).rows, [{ one: 1 }]);
    } finally {
      await postgres.release();
    }
  });

  it('a server of an earlier version, which listens elsewhere, is named with its process', async () => {
    const dataDir = await openFolder();
    const postgres = await acquire(dataDir);
    const lockFile = join(dataDir, 'postgresql', 'postmaster.pid');
    const lines = (await readFile(lockFile, 'utf8')).split('\n');
    try {
      await writeFile(lockFile, lines.with(4, '').join('\n'));
      await assert.rejects(acquire(dataDir), {
        name: 'OperatorError',
        message:
          `The PostgreSQL in ${dataDir} (process ${lines[0]}) was started by an earlier version of the service. Stop ` +
          `that version; if it has ended already, stop PostgreSQL with: kill -INT ${lines[0]}`,
      });
    } finally {
      await writeFile(lockFile, lines.join('\n'));
      await postgres.release();
    }
  });

  it('gives its programs no variable of the environment, such as those that would redirect them', async () => {
    const outer = process.env.PGDATA;
    process.env.PGDATA = '/elsewhere';
    try {
      const { output } = await runCommand('env', [], { account: undefined, timeoutMs: 10_000 });
      assert.deepEqual(output.match(/^\w+(?==)/gm)?.sort(), ['LC_ALL', 'PATH']);
    } finally {
      if (outer === undefined) delete process.env.PGDATA;
      else process.env.PGDATA = outer;
    }
  });

  describe('what answers in its place', () => {
    const password = 'a-password-of-the-environment';
    let received: Buffer;
    let impostor: Server;
    let address: pg.ClientConfig;
    let request: Buffer;
    let outer: string | undefined;

    before(async () => {
      const dataDir = await openFolder();
      const postgres = await acquire(dataDir);
      address = postgres.address;
      await postgres.release();
      outer = process.env.PGPASSWORD;
      process.env.PGPASSWORD = password;
      impostor = createServer((socket) => {
        socket.once('data', () => socket.write(request));
        socket.on('data', (data) => (received = Buffer.concat([received, data])));
        socket.on('error', () => undefined);
      });
      impostor.listen(socketIn(postgres.address.host));
      await once(impostor, 'listening');
    });

    after(async () => {
      if (outer === undefined) delete process.env.PGPASSWORD;
      else process.env.PGPASSWORD = outer;
      impostor.close();
      await once(impostor, 'close');
    });

    // PostgreSQL documentation, "Message Formats": AuthenticationCleartextPassword and AuthenticationMD5Password.
    for (const [kind, body] of [
      ['cleartext', [0, 0, 0, 8, 0, 0, 0, 3]],
      ['MD5', [0, 0, 0, 12, 0, 0, 0, 5, 1, 2, 3, 4]],
    ] as const) {
      it(`gets no ${kind} password when it asks for one`, async () => {
        received = Buffer.alloc(0);
        request = Buffer.from([0x52, ...body]);
        const client = new pg.Client({ ...address, connectionTimeoutMillis: 5_000 });
        client.on('error', () => undefined);
        await assert.rejects(client.connect(), /asks for a password, and the embedded one has none/);
        await client.end();
        assert.ok(received.includes('user\0catalog'), 'it heard who wants in');
        assert.ok(!received.includes('p', received.readInt32BE(0)), 'it got no password message');
        assert.ok(!received.includes(password));
      });
    }
  });
});

/** The socket in the folder that an address names. */
function socketIn(folder: string): string {
  return join(folder, '.s.PGSQL.5432');
}

async function query(address: pg.ClientConfig, sql: string): Promise<pg.QueryResult> {
  const client = new pg.Client({ ...address, connectionTimeoutMillis: 5_000 });
  await client.connect();
  try {
    return await client.query(sql);
  } finally {
    await client.end();
  }
}

async function openFolder(): Promise<string> {
  const folder = await temporaryFolder();
  await chmod(folder, 0o755);
  return folder;
}
