import { appendFile, chmod, chown, cp, mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '../eventually.js';
import { startServerIn, withClient, type TcpServer, type TestPostgres } from '../postgres.js';
import { temporaryFolder } from '../temporary-folder.js';

/** The SQLSTATE of a statement on a replica that is cancelled in favour of the replay. */
const SERIALIZATION_FAILURE = '40001';

/** A streaming replica of a test's PostgreSQL. It is stopped and removed with the test run at the latest. */
export interface TestReplica extends Pick<TcpServer, 'kill' | 'restart' | 'pause' | 'resume'> {
  readonly url: string;
  /** Resolves when it has replayed all that the primary has committed so far. */
  caughtUp(): Promise<void>;
  /** Stops replaying: it still answers, with what it has. */
  pauseReplay(): Promise<void>;
  resumeReplay(): Promise<void>;
  /** Makes it a primary, with all that it has received. Resolves when it takes writes. */
  promote(): Promise<void>;
}

/** What a base backup leaves out (PostgreSQL documentation, "Making a Base Backup Using the Low Level API"). */
const NOT_COPIED =
  /\/(?:\.s\.PGSQL\..+|postmaster\.(?:pid|opts)|pg_wal\/.+|pg_replslot\/.+|pg_stat_tmp\/.+|pgsql_tmp.*)$/;

/**
 * Makes a physical replica of a running server and starts it, by PostgreSQL's low-level functions, since pg_basebackup
 * does not come with the embedded PostgreSQL.
 */
export async function startReplica(primary: TestPostgres): Promise<TestReplica> {
  const folder = await temporaryFolder();
  const data = join(folder, 'postgresql');
  await withClient(primary.url, async (client) => {
    await client.query("select pg_backup_start('replica', true)");
    const original = join(primary.folder, 'postgresql');
    await cp(original, data, { recursive: true, filter: (path) => !NOT_COPIED.test(path) });
    const { rows } = await client.query<{ labelfile: string }>('select labelfile from pg_backup_stop(false)');
    await writeFile(join(data, 'backup_label'), rows[0]?.labelfile ?? '');
    const { hostname, port, username, password } = new URL(primary.url);
    await appendFile(
      join(data, 'postgresql.auto.conf'),
      `primary_conninfo = 'host=${hostname} port=${port} user=${username} password=${password}'\n`,
    );
    await writeFile(join(data, 'standby.signal'), '');
    await mkdir(join(data, 'pg_wal'), { recursive: true });
    await ownLike(original, data);
  });
  const server = await startServerIn(folder);
  const url = server.urlOf('catalog');

  async function caughtUp(): Promise<void> {
    const position = await withClient(primary.url, async (client) => {
      const { rows } = await client.query<{ lsn: string }>('select pg_current_wal_lsn()::text as lsn');
      return rows[0]?.lsn;
    });
    await eventually('the replica has caught up', () =>
      withClient(url, async (client) => {
        const { rows } = await client.query<{ done: boolean }>(
          'select pg_last_wal_replay_lsn() >= $1::pg_lsn as done',
          [position],
        );
        return rows[0]?.done;
      }),
    );
  }

  await caughtUp();
  return {
    ...server,
    url,
    caughtUp,
    pauseReplay: () =>
      withClient(url, async (client) => {
        await client.query('select pg_wal_replay_pause()');
        await eventually('replay is paused', async () => {
          const { rows } = await client.query<{ state: string }>('select pg_get_wal_replay_pause_state() as state');
          return rows[0]?.state === 'paused';
        });
      }),
    resumeReplay: () =>
      withClient(url, async (client) => {
        // A replay that was paused for long cancels whatever it conflicts with, also the statement that resumed it.
        await client.query('select pg_wal_replay_resume()').catch((error: unknown) => {
          if ((error as { code?: string }).code !== SERIALIZATION_FAILURE) throw error;
        });
      }),
    promote: () =>
      withClient(url, async (client) => {
        await client.query('select pg_promote()');
      }),
  };
}

/** PostgreSQL insists that its files belong to it, and to nobody else. */
async function ownLike(original: string, copy: string): Promise<void> {
  const { uid, gid } = await stat(original);
  const names = await readdir(copy, { recursive: true });
  for (const path of [copy, ...names.map((name) => join(copy, name))]) {
    if ((await stat(path)).uid !== uid) await chown(path, uid, gid);
  }
  await chmod(copy, 0o700);
}
