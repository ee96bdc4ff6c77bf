import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmod, chown, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { postgresAccount, runCommand, runningAsRoot } from '../../src/embedded-postgres/account.js';
import { openDataDirectory } from '../../src/embedded-postgres/data-directory.js';
import { openEmbeddedPostgres, type EmbeddedPostgres } from '../../src/embedded-postgres/index.js';
import { skipWithout } from '../support/programs/skip.js';
import { temporaryFolder } from '../support/temporary-folder.js';

/** An account that is neither root nor the one that PostgreSQL runs as. */
const STRANGER = { uid: 12_345, gid: 12_345 };

const SECRET = 'only root may read or write this\n';

describe('the embedded PostgreSQL and other accounts of the machine', function () {
  this.timeout(60_000);

  describe('as root', () => {
    let parent: string;
    let dataDir: string;
    /** Only root may enter it. */
    let closed: string;

    before(function () {
      if (!runningAsRoot()) skipWithout('the rights of root', this);
    });

    beforeEach(async () => {
      parent = await openFolder();
      dataDir = join(parent, 'data');
      closed = await temporaryFolder();
      await writeFile(join(closed, 'victim'), SECRET, { mode: 0o600 });
    });

    const open = (path: string) => openDataDirectory({ packageRoot: parent, dataDir: path });

    async function assertRefused(path: string, reason: string, remedy: string): Promise<void> {
      await assert.rejects(open(path), {
        name: 'OperatorError',
        message:
          `The data directory ${path} cannot be used by root: ${reason}, so others could replace what root writes. Set DATA_DIR ` +
          `to a directory that only root can change, including all of its parents. Or, if you trust its contents, run: ${remedy}`,
      });
    }

    it('a data directory of another account is refused, and nothing is written to it', async () => {
      await mkdir(dataDir);
      await chown(dataDir, STRANGER.uid, STRANGER.gid);
      await assertRefused(dataDir, `${dataDir} belongs to the account with uid 12345`, `chown root ${dataDir}`);
      assert.deepEqual(await readdir(dataDir), []);
    });

    it('a data directory that others may write to is refused', async () => {
      await mkdir(dataDir);
      for (const { uid, gid } of [{ uid: 0, gid: 0 }, await postgresAccount()]) {
        await chown(dataDir, uid, gid);
        await chmod(dataDir, 0o1775);
        const reason = `accounts other than its owner may write to ${dataDir}`;
        await assertRefused(dataDir, reason, `chmod go-w ${dataDir}`);
      }
    });

    it('a data directory in a folder that another account can change is refused, and nothing is created there', async () => {
      for (const name of ['data', 'new/newer']) {
        const path = join(parent, name);
        await chown(parent, STRANGER.uid, STRANGER.gid);
        await assertRefused(path, `${parent} belongs to the account with uid 12345`, `chown root ${parent}`);
        await chown(parent, 0, 0);
        await chmod(parent, 0o777);
        await assertRefused(path, `accounts other than its owner may write to ${parent}`, `chmod go-w ${parent}`);
        await chmod(parent, 0o755);
      }
      assert.deepEqual(await readdir(parent), []);
      await chmod(parent, 0o1777);
      assert.equal((await open(dataDir)).path, dataDir, 'a sticky folder, in which nobody can replace it');
    });

    it('no symbolic link is followed to a data directory', async () => {
      await symlink(closed, dataDir);
      for (const path of [dataDir, join(dataDir, 'new')]) {
        await assert.rejects(open(path), {
          message:
            `The data directory ${path} cannot be used by root: ${dataDir} is a symbolic link, which is not followed as root. Set ` +
            'DATA_DIR to a path without links.',
        });
      }
      assert.deepEqual([await readdir(closed), (await stat(closed)).mode & 0o777], [['victim'], 0o700]);
    });

    it('no file of the cluster that is a link is read or written', async () => {
      const victim = join(closed, 'victim');
      await (await openEmbeddedPostgres({ packageRoot: parent, dataDir })).close();
      await chmod(closed, 0o711);
      for (const name of ['postmaster.pid', 'server.log.1', 'server.log', 'pg_hba.conf', 'PG_VERSION']) {
        await rm(join(dataDir, 'postgresql', name), { force: true });
        await symlink(victim, join(dataDir, 'postgresql', name));
        if (name !== 'PG_VERSION' && name !== 'pg_hba.conf') continue;
        await assert.rejects(openEmbeddedPostgres({ packageRoot: parent, dataDir }), (error: Error) => {
          return error.name === 'OperatorError' && !error.message.includes(SECRET.trim());
        });
      }
      const { uid, mode } = await stat(victim);
      assert.deepEqual([await readFile(victim, 'utf8'), uid, mode & 0o777], [SECRET, 0, 0o600]);
    });
  });

  describe('while it runs', () => {
    let postgres: EmbeddedPostgres;

    before(async () => {
      const folder = await openFolder();
      // Its path is longer than the address of a socket may be.
      postgres = await openEmbeddedPostgres({ packageRoot: folder, dataDir: join(folder, 'long '.repeat(30).trim()) });
    });
    after(() => postgres.close());

    it('the embedded PostgreSQL listens on no port, and is reached by a path longer than a socket address may be', async () => {
      const client = new pg.Client(postgres.address);
      await client.connect();
      const { rows } = await client.query('show listen_addresses');
      await client.end();
      assert.deepEqual(rows, [{ listen_addresses: '' }]);
    });

    it('no other account can read the files of the embedded PostgreSQL or reach its socket', async function () {
      if (!runningAsRoot()) skipWithout('the rights of root', this);
      const cluster = join(postgres.dataDir, 'postgresql');
      assert.equal((await stat(cluster)).mode & 0o777, 0o700);
      const list = (account: typeof STRANGER) => runCommand('ls', [cluster], account);
      assert.match((await list(STRANGER)).output, /Permission denied/);
      assert.match((await list(await postgresAccount())).output, /\.conf$/m);
    });

    it('the programs of PostgreSQL get no variable of the environment, which might redirect them', async () => {
      const { output } = await runCommand('env', [], undefined);
      assert.deepEqual(output.match(/^\w+(?==)/gm)?.sort(), ['LC_ALL', 'PATH']);
    });
  });

  it('a program that answers in place of the embedded PostgreSQL gets no password', async () => {
    const folder = await openFolder();
    const postgres = await openEmbeddedPostgres({ packageRoot: folder, dataDir: folder });
    await postgres.close();
    let received = Buffer.alloc(0);
    const impostor = createServer((socket) => {
      // PostgreSQL documentation, "Message Formats": AuthenticationCleartextPassword.
      socket.once('data', () => socket.write(Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3])));
      socket.on('data', (data) => (received = Buffer.concat([received, data])));
      socket.on('error', () => undefined);
    });
    impostor.listen(join(postgres.address.host, '.s.PGSQL.5432'));
    await once(impostor, 'listening');
    const outer = process.env.PGPASSWORD;
    process.env.PGPASSWORD = 'a-password-of-the-environment';
    try {
      const client = new pg.Client({ ...postgres.address, connectionTimeoutMillis: 5_000 });
      client.on('error', () => undefined);
      await assert.rejects(client.connect(), /requires a password, and the embedded one has none/);
      await client.end();
      assert.ok(received.includes('user\0catalog') && !received.includes(process.env.PGPASSWORD));
    } finally {
      if (outer === undefined) delete process.env.PGPASSWORD;
      else process.env.PGPASSWORD = outer;
      impostor.close();
    }
  });
});

/** A folder that everybody can enter. */
async function openFolder(): Promise<string> {
  const folder = await temporaryFolder();
  await chmod(folder, 0o755);
  return folder;
}
