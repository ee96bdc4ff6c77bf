import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import pg from 'pg';
import { CLUSTER_FOLDER, ensureCluster, SUPERUSER } from '../../src/embedded-postgres/cluster.js';
import { findPrograms, postgresAccount, preparePrograms } from '../../src/embedded-postgres/programs.js';
import { startServer } from '../../src/embedded-postgres/server.js';
import { openDatabase } from '../../src/platform/postgres/database.js';
import { migrate } from '../../src/platform/postgres/migrations.js';
import { eventually, GIVE_UP_MS } from './eventually.js';
import { ROOT } from './guides.js';
import { freePort } from './programs/free-port.js';
import { serverProcesses, signalServers } from './programs/server-processes.js';
import { isInMemory, temporaryFolder } from './temporary-folder.js';

/** A database of its own for one test or suite. */
export interface TestDatabase {
  readonly url: string;
  /** Removes it, also when somebody is connected. */
  drop(): Promise<void>;
}

/** A server of its own, for tests that take it away. It is stopped and removed with the test run at the latest. */
export interface TestPostgres {
  /** Where its data directory is. */
  readonly folder: string;
  /** A migrated database. The same after a restart. */
  readonly url: string;
  /** Stops the server in order, or immediately, without writing what it has in memory. */
  stop(mode?: 'fast' | 'immediate'): Promise<void>;
  /** Starts it where it was. */
  restart(): Promise<void>;
  /** Kills all its processes, as a power failure would. */
  kill(): Promise<void>;
  /** Freezes all its processes: connections stay, and new ones are accepted by the system, but nothing answers. */
  pause(): void;
  resume(): void;
}

/** The migrated database of each cluster. Databases of the shared server are cloned from it. */
const MIGRATED = 'catalog';

/** The folders whose content makes the migrated cluster what it is. */
const MADE_BY = ['db/migrations', 'src/embedded-postgres', 'src/platform/postgres'];

/** Servers of tests are reached by TCP, since tests put proxies between and give out URLs. */
const SETTINGS = {
  listen_addresses: '127.0.0.1',
  // Shared memory in files goes with the folder, also when the server was killed.
  dynamic_shared_memory_type: 'mmap',
  // Tests kill servers, never the machine.
  fsync: 'off',
  full_page_writes: 'off',
  // It would start a process for each of the databases in turn.
  autovacuum: 'off',
  // By default nobody may prepare transactions.
  max_prepared_transactions: '2',
};
/** Where the folder lies in memory, the log of changes must not fill it. */
const SETTINGS_IN_MEMORY = { max_wal_size: '128MB' };
const PASSWORD = randomBytes(24).toString('base64url');
const RULES = [
  'local all all trust',
  ...['all', 'replication'].map((name) => `host ${name} all 127.0.0.1/32 scram-sha-256`),
];

let shared: Promise<SharedServer> | undefined;
let programs: Promise<string> | undefined;
let migrated: Promise<string> | undefined;
let databases = 0;

/** A fresh database with the current schema. */
export function createTestDatabase(): Promise<TestDatabase> {
  return cloneDatabase(MIGRATED);
}

/** A fresh database with nothing in it. */
export function createEmptyDatabase(): Promise<TestDatabase> {
  return cloneDatabase('template1');
}

async function cloneDatabase(template: string): Promise<TestDatabase> {
  const { urlOf, run } = await (shared ??= startShared());
  const name = `test_${++databases}`;
  // Copies files, which takes half of the time of writing them to the log of changes.
  await run(`create database ${name} template ${template} strategy file_copy`);
  return { url: urlOf(name), drop: () => run(`drop database if exists ${name} with (force)`) };
}

/** The server of this process' test databases. */
interface SharedServer {
  readonly urlOf: TcpServer['urlOf'];
  /** Runs a statement on its one connection, which does not keep the process from ending. */
  readonly run: (sql: string) => Promise<void>;
}

async function startShared(): Promise<SharedServer> {
  const { urlOf } = await startPostgres();
  // A first connection writes a cache of the system tables into the folder of its database. Clones copy it.
  await withClient(urlOf(MIGRATED), (client) => client.query('select'));
  const pool = new pg.Pool({
    connectionString: urlOf('postgres'),
    max: 1,
    idleTimeoutMillis: 0,
    allowExitOnIdle: true,
  });
  return { urlOf, run: async (sql) => void (await pool.query(sql)) };
}

/** Starts a server for one suite alone. */
export async function startPostgres(): Promise<TcpServer & TestPostgres> {
  const folder = await temporaryFolder();
  await copy(await (migrated ??= provideMigratedCluster()), join(folder, CLUSTER_FOLDER));
  const server = await startWithPassword(folder);
  return { ...server, url: server.urlOf(MIGRATED) };
}

/**
 * Provides a stopped cluster with a migrated database, to be copied: a copy takes a twentieth of the time of initdb and
 * the migrations. It is kept in `.cache` until something that it was made by changes.
 *
 * @returns its folder
 */
async function provideMigratedCluster(): Promise<string> {
  const hash = createHash('sha256')
    .update(findPrograms())
    .update(await readFile(new URL(import.meta.url)));
  for (const folder of MADE_BY) {
    const names = await readdir(new URL(folder, ROOT), { recursive: true });
    for (const name of names.filter((it) => /\.(?:sql|ts)$/.test(it)).sort()) {
      hash.update(name).update(await readFile(new URL(`${folder}/${name}`, ROOT)));
    }
  }
  const cache = fileURLToPath(new URL('.cache', ROOT));
  const prefix = `postgres-${process.getuid?.()}-`;
  const cluster = prefix + hash.digest('hex').slice(0, 16);
  if (existsSync(join(cache, cluster))) return join(cache, cluster);

  const folder = await temporaryFolder();
  const server = await startWithPassword(folder);
  const db = openDatabase({
    address: server.urlOf(MIGRATED),
    applicationName: 'test',
    poolSize: 1,
    acquireTimeoutMs: GIVE_UP_MS,
    statementTimeoutMs: 0,
  });
  await migrate(db);
  await db.destroy();
  await server.stop();
  await mkdir(cache, { recursive: true });
  for (const name of await readdir(cache)) {
    if (name.startsWith(prefix) && name !== cluster) await rm(join(cache, name), { recursive: true, force: true });
  }
  const unfinished = join(cache, `.${cluster}-${process.pid}`);
  await copy(join(folder, CLUSTER_FOLDER), unfinished);
  // Fails when another process was quicker: its cluster is as good.
  await rename(unfinished, join(cache, cluster)).catch(() => rm(unfinished, { recursive: true }));
  return join(cache, cluster);
}

/** Copies a folder with the owners and modes of its files, on which PostgreSQL insists. */
async function copy(from: string, to: string): Promise<void> {
  await promisify(execFile)('cp', ['-a', from, to]);
}

/** A server that listens on a port of 127.0.0.1, the same after each start. */
export interface TcpServer extends Omit<TestPostgres, 'url'> {
  readonly urlOf: (database: string) => string;
}

/** As {@link startServerIn}; its superuser gets the password of this process. */
async function startWithPassword(folder: string): Promise<TcpServer> {
  const server = await startServerIn(folder);
  const socket = { host: server.socketFolder, port: server.port, user: SUPERUSER, database: 'postgres' };
  // Each connection repeats the iterations.
  const sql = `set scram_iterations = 1; alter role ${SUPERUSER} password '${PASSWORD}'`;
  await withClient(socket, (client) => client.query(sql));
  return server;
}

/** Starts the server of a folder, whose cluster is made where there is none. */
export async function startServerIn(folder: string): Promise<TcpServer & { socketFolder: string; port: number }> {
  const account = await postgresAccount(join(folder, CLUSTER_FOLDER));
  // Once a process.
  const folderOfPrograms = await (programs ??= preparePrograms(findPrograms(), account));
  const cluster = await ensureCluster(folder, folderOfPrograms, account);
  await writeFile(join(cluster, 'pg_hba.conf'), `${RULES.join('\n')}\n`);
  let port = await freePort();
  const start = () =>
    startServer({
      programs: folderOfPrograms,
      cluster,
      account,
      logFile: join(folder, 'server.log'),
      address: { host: cluster, port, user: SUPERUSER, database: MIGRATED },
      settings: { ...SETTINGS, ...(isInMemory(folder) && SETTINGS_IN_MEMORY) },
    });
  let server = await start().catch(async (error: unknown) => {
    // A port that was free a moment ago is somebody else's by now.
    if (!String(error).includes('Address already in use')) throw error;
    port = await freePort();
    return start();
  });
  return {
    folder,
    port,
    socketFolder: cluster,
    urlOf: (database) => `postgres://${SUPERUSER}:${PASSWORD}@127.0.0.1:${port}/${database}`,
    stop: (mode) => server.stop(mode === 'immediate' ? 'SIGQUIT' : 'SIGINT'),
    async restart() {
      await server.stop();
      server = await start();
    },
    async kill() {
      signalServers(cluster, 'SIGKILL');
      await eventually('all processes are gone', () => serverProcesses(cluster).length === 0);
    },
    pause() {
      signalServers(cluster, 'SIGSTOP');
    },
    resume() {
      signalServers(cluster, 'SIGCONT');
    },
  };
}

/** Opens one connection, without the service's code, and closes it after use. */
export async function withClient<T>(
  config: string | pg.ClientConfig,
  use: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const address = typeof config === 'string' ? { connectionString: config } : config;
  const client = new pg.Client({ ...address, connectionTimeoutMillis: GIVE_UP_MS, query_timeout: GIVE_UP_MS });
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}
