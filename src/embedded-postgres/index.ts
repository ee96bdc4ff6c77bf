import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { platform } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { lock } from 'proper-lockfile';
import { OperatorError } from '../errors.js';
import { findNativePackage, prepareBinaries } from './binaries.js';
import { SUPERUSER } from './cluster.js';
import { CLUSTER_FOLDER, openDataDirectory, SYSTEM_DIRECTORY, type DataDirectoryChoice } from './data-directory.js';
import { readServerState, SOCKET_PORT, startServer, type Server } from './server.js';

/** The service's database in the cluster. */
const DATABASE = 'catalog';

/** The longest address of a Unix socket on every system, in bytes: macOS takes 104, Linux 108. */
const MAX_SOCKET_PATH = 103;

/** How long to wait for a server that another process is about to stop, in milliseconds. */
const MAX_STOPPING_MS = 3_000;

/** How long to wait for another process that starts PostgreSQL or uses it alone, in milliseconds. */
const MAX_LOCKED_MS = 120_000;

const POLL_INTERVAL_MS = 50;

/** The address of the service's database, by a Unix socket. */
export interface ConnectionAddress {
  /** The folder of the socket. */
  readonly host: string;
  /** The number in the name of the socket; not a port of the network. */
  readonly port: number;
  readonly user: string;
  /** Throws: the server requires no password. */
  readonly password: () => never;
  readonly database: string;
  readonly ssl: false;
  readonly options: string;
}

/** See README.md. */
export interface EmbeddedPostgres {
  /** Absolute path of the data directory. */
  readonly dataDir: string;
  readonly address: ConnectionAddress;
  /** Stops the server if this process started it. Close all connections first. */
  close(): Promise<void>;
}

export interface EmbeddedPostgresOptions extends DataDirectoryChoice {
  /**
   * Given by a process that serves: it starts the server and lets others use it. Called when the server ends before
   * `close`. Without it, this process uses the server of a process that serves. If there is none, it starts one for its
   * own duration, in which the others wait.
   */
  readonly onLost?: ((reason: OperatorError) => void) | undefined;
}

/**
 * Opens the embedded PostgreSQL, and creates its database the first time.
 *
 * @throws OperatorError with the remedy, such as for an unusable data directory, a full disk or another major version
 */
export async function openEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { onLost, systemDirectory = SYSTEM_DIRECTORY } = options;
  // First, so that nothing is created without it.
  const nativePackage = await findNativePackage();
  const directory = await openDataDirectory(options);
  const cluster = join(directory.path, CLUSTER_FOLDER);
  const unlock = await takeLock(directory.path);
  let server: Server | undefined;
  let isClosing = false;
  try {
    if (!(await isServed(cluster, onLost === undefined))) {
      const binaries = await prepareBinaries(nativePackage, directory.account, systemDirectory);
      server = await startServer(directory, binaries);
      void server.ended.then(() => {
        if (!isClosing) onLost?.(new OperatorError(`The embedded PostgreSQL in ${directory.path} ended unexpectedly.`));
      });
    }
    const socket = await openSocketFolder(cluster);
    if (server) await createDatabase({ ...addressIn(socket.path), database: 'postgres' });
    if (onLost || !server) await unlock();
    return {
      dataDir: directory.path,
      address: addressIn(socket.path),
      async close() {
        isClosing = true;
        await server?.stop();
        await socket.close();
        await unlock();
      },
    };
  } catch (error) {
    isClosing = true;
    await server?.stop();
    await unlock();
    throw error;
  }
}

/**
 * Whether another process has started the server. One that is about to stop is waited for.
 *
 * @param mayJoin - whether that is of use
 */
async function isServed(cluster: string, mayJoin: boolean): Promise<boolean> {
  const deadline = Date.now() + MAX_STOPPING_MS;
  for (;;) {
    const state = await readServerState(cluster);
    if (!state) return false;
    if (state.isReady && mayJoin) return true;
    if (Date.now() > deadline) {
      throw new OperatorError(
        `Another process uses the PostgreSQL in ${cluster} (process ${state.pid}). Stop it first, or set DATA_DIR to ` +
          'another directory.',
      );
    }
    await delay(POLL_INTERVAL_MS);
  }
}

/**
 * Takes the lock of a data directory: nobody else starts a server there meanwhile. A process that is suspended for long
 * may lose it. PostgreSQL's own lock then still refuses a second server.
 *
 * @returns releases the lock; may be called again
 */
async function takeLock(dataDirectory: string): Promise<() => Promise<void>> {
  try {
    const unlock = await lock(dataDirectory, {
      lockfilePath: join(dataDirectory, 'lock'),
      stale: 3_000,
      update: 1_000,
      retries: { forever: true, maxRetryTime: MAX_LOCKED_MS, minTimeout: 20, maxTimeout: 250, factor: 1.5 },
      // The default throws from a timer, and so ends the process.
      onCompromised: () => undefined,
    });
    return () => unlock().catch(() => undefined);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ELOCKED') throw error;
    throw new OperatorError(
      `Another process has had exclusive use of the PostgreSQL in ${dataDirectory} for more than ${MAX_LOCKED_MS / 1000} s. ` +
        'Wait for it to finish, or find out whether it hangs.',
      { cause: error },
    );
  }
}

/** A path to a folder that is short enough for the address of a socket. */
async function openSocketFolder(folder: string): Promise<{ path: string; close: () => Promise<void> }> {
  const path = join(folder, `.s.PGSQL.${SOCKET_PORT}`);
  if (Buffer.byteLength(path) <= MAX_SOCKET_PATH) return { path: folder, close: () => Promise.resolve() };
  if (platform() !== 'linux') {
    throw new OperatorError(
      `The path ${path} is too long for a socket. Set DATA_DIR to a directory with a shorter path.`,
    );
  }
  const handle = await open(folder, constants.O_RDONLY | constants.O_DIRECTORY);
  return { path: `/proc/self/fd/${handle.fd}`, close: () => handle.close() };
}

/** All options are given, so that the driver adds none of PGSSLMODE and PGOPTIONS, which concern other servers. */
function addressIn(socketFolder: string): ConnectionAddress {
  return {
    host: socketFolder,
    port: SOCKET_PORT,
    user: SUPERUSER,
    password: refusePassword,
    database: DATABASE,
    ssl: false,
    options: '-c search_path=public',
  };
}

/** The driver calls this if a server requires a password, instead of sending that of PGPASSWORD or ~/.pgpass. */
function refusePassword(): never {
  throw new OperatorError(
    'Another program answers in place of the embedded PostgreSQL: it requires a password, and the embedded one has none. ' +
      'Find out which program it is.',
  );
}

/** @param address - of the database that PostgreSQL creates itself */
async function createDatabase(address: pg.ClientConfig): Promise<void> {
  const client = new pg.Client({ ...address, connectionTimeoutMillis: 10_000 });
  await client.connect();
  try {
    const { rowCount } = await client.query('select from pg_database where datname = $1', [DATABASE]);
    if (rowCount === 0) await client.query(`create database ${DATABASE} template template0`);
  } finally {
    await client.end();
  }
}
