import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import pg from 'pg';
import { findNativePackage, prepareBinaries, type Binaries } from '../../src/embedded-postgres/binaries.js';
import { SUPERUSER } from '../../src/embedded-postgres/cluster.js';
import { CLUSTER_FOLDER, openDataDirectory, SYSTEM_DIRECTORY } from '../../src/embedded-postgres/data-directory.js';
import { startServer, type ServerAccess, type StopMode } from '../../src/embedded-postgres/server.js';
import { openDatabase } from '../../src/platform/postgres/database.js';
import { migrate } from '../../src/platform/postgres/migrations.js';
import { eventually } from './eventually.js';
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
  /** Stops the server in order. */
  stop(mode?: StopMode): Promise<void>;
  /** Starts it where it was. */
  restart(): Promise<void>;
  /** Kills all its processes, as a power failure would. */
  kill(): Promise<void>;
  /** Freezes all its processes: connections stay, and new ones are accepted by the system, but nothing answers. */
  pause(): void;
  resume(): void;
}

/** Migrated once a run, and cloned for each database. */
const TEMPLATE = 'template_catalog';

/** Servers of tests are reached by TCP, since tests put proxies between and give out URLs. */
const SETTINGS = {
  listen_addresses: '127.0.0.1',
  // Shared memory in files goes with the folder, also when the server was killed.
  dynamic_shared_memory_type: 'mmap',
};
/** Where the folder lies in memory, the log of changes must not fill it. */
const SETTINGS_IN_MEMORY = { max_wal_size: '128MB' };
const PASSWORD = randomBytes(24).toString('base64url');
const RULES = [
  'local all all trust',
  ...['all', 'replication'].map((name) => `host ${name} all 127.0.0.1/32 scram-sha-256`),
];

let shared: Promise<SharedServer> | undefined;
let binaries: Promise<Binaries> | undefined;
let databases = 0;

interface SharedServer {
  run(sql: string): Promise<void>;
  url(database: string): string;
}

/** A fresh database with the current schema, cloned from one that is migrated once a run. */
export function createTestDatabase(): Promise<TestDatabase> {
  return cloneDatabase(TEMPLATE);
}

/** A fresh database with nothing in it. */
export function createEmptyDatabase(): Promise<TestDatabase> {
  return cloneDatabase('template1');
}

async function cloneDatabase(template: string): Promise<TestDatabase> {
  shared ??= startShared();
  const server = await shared;
  const name = `test_${++databases}`;
  await server.run(`create database ${name} template ${template}`);
  return { url: server.url(name), drop: () => server.run(`drop database if exists ${name} with (force)`) };
}

/** Starts a server for one suite alone. */
export async function startPostgres(): Promise<TestPostgres> {
  const server = await startCluster();
  const database = 'catalog';
  const url = server.urlOf(database);
  await runSql(server.urlOf('postgres'), `create database ${database}`);
  await migrateDatabase(url);
  return { ...server, url };
}

async function startShared(): Promise<SharedServer> {
  const { urlOf: url } = await startCluster();
  const run = (sql: string) => runSql(url('postgres'), sql);
  await run(`create database ${TEMPLATE}`);
  await migrateDatabase(url(TEMPLATE));
  return { run, url };
}

/** A server that listens on a port of 127.0.0.1, the same after each start. */
export interface TcpServer extends Omit<TestPostgres, 'url'> {
  readonly urlOf: (database: string) => string;
}

async function startCluster(): Promise<TcpServer> {
  const server = await startServerIn(await temporaryFolder());
  const client = new pg.Client({ host: server.socketFolder, port: server.port, user: SUPERUSER, database: 'postgres' });
  await client.connect();
  try {
    await client.query(`alter role ${SUPERUSER} password '${PASSWORD}'`);
  } finally {
    await client.end();
  }
  return server;
}

/** Starts the server of a folder, whose cluster is made where there is none. */
export async function startServerIn(folder: string): Promise<TcpServer & { socketFolder: string; port: number }> {
  const directory = await openDataDirectory({ packageRoot: folder, dataDir: folder });
  // Once a process: each search starts all the programs.
  binaries ??= prepareBinaries(await findNativePackage(), directory.account, SYSTEM_DIRECTORY);
  const programs = await binaries;
  const cluster = join(folder, CLUSTER_FOLDER);
  let port = await freePort();
  const start = () => startServer(directory, programs, accessTo(folder, port));
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
    stop: (mode) => server.stop(mode),
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

function accessTo(folder: string, port: number): ServerAccess {
  const settings = { ...SETTINGS, ...(isInMemory(folder) && SETTINGS_IN_MEMORY), port: String(port) };
  return { settings, rules: `${RULES.join('\n')}\n` };
}

async function runSql(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 10_000, query_timeout: 30_000 });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}

async function migrateDatabase(url: string): Promise<void> {
  const db = openDatabase({
    address: url,
    applicationName: 'catalog test',
    // Migrating takes one for its lock.
    poolSize: 2,
    acquireTimeoutMs: 10_000,
    statementTimeoutMs: 0,
  });
  try {
    await migrate(db);
  } finally {
    await db.destroy();
  }
}
