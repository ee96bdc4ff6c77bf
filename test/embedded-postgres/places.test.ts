import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmod, cp, lstat, mkdir, readdir, realpath, rm, rmdir, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import pg from 'pg';
import { openEmbeddedPostgres } from '../../src/embedded-postgres/index.js';
import {
  findPrograms,
  OPEN_DIRECTORY,
  postgresAccount,
  preparePrograms,
  run,
} from '../../src/embedded-postgres/programs.js';
import { skipWithout } from '../support/programs/skip.js';
import { temporaryFolder } from '../support/temporary-folder.js';

/** An account that is neither root nor the one that PostgreSQL runs as. */
const STRANGER = { uid: 12_345, gid: 12_345 };

/** What would lead PostgreSQL and its driver elsewhere. */
const MISLEADING = { PGDATA: '/nowhere', PGPORT: '1', PGSSLMODE: 'require', PGOPTIONS: '-c nothing=1' };

describe('the places of the embedded PostgreSQL', () => {
  it('it runs in a folder that only its owner can enter, as root too, at a path longer than a socket address may be', async () => {
    const closed = await temporaryFolder();
    await chmod(closed, 0o700);
    const packageRoot = join(closed, `a folder with 'quotes" and $HOME `.repeat(5).trim());
    await mkdir(packageRoot);
    const open = () => openEmbeddedPostgres({ packageRoot, dataDir: undefined });
    const cluster = join(packageRoot, '.data/postgresql');
    const before = { ...process.env };
    Object.assign(process.env, MISLEADING);
    try {
      const postgres = await open();
      try {
        const client = new pg.Client(postgres.address);
        await client.connect();
        const { rows } = await client.query('show listen_addresses');
        await client.end();
        assert.deepEqual(rows, [{ listen_addresses: '' }], 'it listens on no port');
        const log = await stat(join(packageRoot, '.data/server.log'));
        assert.equal(log.mode & 0o777, 0o600, 'only its owner reads its log, which has statements that failed');
        const { uid, mode } = await stat(cluster);
        assert.deepEqual([uid === 0, mode & 0o777, (await stat(closed)).mode & 0o777], [false, 0o700, 0o700]);
        if (process.getuid?.() === 0) {
          await assert.rejects(run('ls', [await realpath(cluster)], STRANGER), /Permission denied/);
          await run('ls', [await realpath(cluster)], await postgresAccount(cluster));
        }
      } finally {
        await postgres.close();
      }

      await writeFile(join(cluster, 'postgresql.conf'), "work_mem = 'lots'\n");
      await assert.rejects(open(), (error: Error) => {
        assert.match(error.message, /PostgreSQL does not start: .*invalid value for parameter "work_mem": "lots"/s);
        assert.ok(error.message.includes(`Its log is ${join(packageRoot, '.data/server.log')}`));
        return error.name === 'OperatorError';
      });
      await writeFile(join(cluster, 'postgresql.conf'), '');
      await writeFile(join(cluster, 'PG_VERSION'), '9\n');
      await assert.rejects(open(), /initialized by PostgreSQL version 9, which is not compatible with this version 18/);
      assert.deepEqual((await readdir(dirname(cluster))).sort(), ['postgresql', 'server.log']);
    } finally {
      process.env = before;
      // Outside the folder where that is closed to the account of PostgreSQL.
      await rm(await realpath(cluster), { recursive: true });
      await rmdir(OPEN_DIRECTORY).catch(() => undefined);
    }
  });

  it('a data directory that cannot be made, or whose data are away, is named in the error, with what to do', async () => {
    const file = join(await temporaryFolder(), 'file');
    await writeFile(file, '');
    const withoutData = await temporaryFolder();
    await symlink(join(withoutData, 'unmounted'), join(withoutData, 'postgresql'));
    for (const dataDir of [join(file, 'data'), file, withoutData]) {
      await assert.rejects(openEmbeddedPostgres({ packageRoot: file, dataDir }), {
        name: 'OperatorError',
        message: new RegExp(`^The embedded PostgreSQL cannot run in ${dataDir}: .+`),
        advice: /^Set DATA_DIR to another directory/,
      });
    }
  });

  it('the error says that PostgreSQL refuses an account without a name', async function () {
    const { seteuid } = process;
    if (process.getuid?.() !== 0 || seteuid === undefined) return skipWithout('root', this);
    seteuid(STRANGER.uid);
    const chosen = postgresAccount('/nowhere').finally(() => seteuid(0));
    await assert.rejects(
      chosen,
      /^Error: the user of this process has no entry in \/etc\/passwd, which PostgreSQL needs$/,
    );
  });

  it('links and exec bits that an installation without scripts left out are restored, for root in a copy if need be', async () => {
    const folder = await temporaryFolder();
    const installed = join(folder, 'package/native');
    await cp(dirname(findPrograms()), dirname(installed), { recursive: true, verbatimSymlinks: true });
    const library = join(installed, 'lib');
    for (const name of await readdir(library)) {
      if ((await lstat(join(library, name))).isSymbolicLink()) await rm(join(library, name));
    }
    await chmod(join(installed, 'bin/postgres'), 0o644);
    execFileSync('chmod', ['-R', 'go-rwx', dirname(installed)]);
    const account = await postgresAccount(folder);
    const open = join(folder, 'open');
    const programs = await preparePrograms(installed, account, open);
    assert.equal(programs.startsWith(open), account !== undefined);
    assert.match(await run(join(programs, 'bin/postgres'), ['--version'], account), /^postgres \(PostgreSQL\) 18/);
    assert.equal(await preparePrograms(installed, account, open), programs);
  });
});
