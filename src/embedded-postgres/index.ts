import { access, constants, mkdir, mkdtemp, realpath, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { lock } from 'proper-lockfile';
import { OperatorError } from '../errors.js';
import { CLUSTER_FOLDER, ensureCluster, SUPERUSER } from './cluster.js';
import { findPrograms, postgresAccount, preparePrograms } from './programs.js';
import { probe, startServer } from './server.js';

/** The number in the name of the server's socket. The server uses no port of the network. */
const SOCKET_PORT = 5432;

/** The longest address of a Unix socket on every system, in bytes: macOS takes 104, Linux 108. */
const MAX_SOCKET_PATH = 103;

/** How long to wait for a server that stops, such as that of a process which was killed, in milliseconds. */
const MAX_STOPPING_MS = 5_000;

/** How long to wait for another process that starts PostgreSQL, or has it to itself, in milliseconds. */
const MAX_LOCKED_MS = 120_000;

/** Explanations of errors, by their codes. */
const HINTS: Readonly<Record<string, string>> = {
  ELOCKED: 'another process of the service is already running there',
  ENOENT: 'its data or a program is missing; on Linux it needs glibc, which Alpine Linux, for example, does not have',
};

export interface EmbeddedPostgres {
  /** The address of the service's database, by a Unix socket. */
  readonly address: pg.ClientConfig;
  /** Stops the server if this process started it. Close all connections first. */
  close(): Promise<void>;
}

export interface EmbeddedPostgresOptions {
  /** The DATA_DIR setting; undefined for `.data` in the checkout. */
  readonly dataDir: string | undefined;
  /** The folder of this package's package.json. */
  readonly packageRoot: string;
  /**
   * Given by a process that serves: it starts the server and lets others use it. Called when the server ends before
   * `close`. Without it, this process uses the server of a process that serves, or else starts one and stops it at its
   * end; other processes wait until then.
   */
  readonly onLost?: ((reason: OperatorError) => void) | undefined;
}

/**
 * Opens the embedded PostgreSQL, and creates its database the first time.
 *
 * @throws OperatorError with the reason, such as an unusable data directory, a full disk or another major version
 */
export async function openEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { packageRoot, onLost } = options;
  // First, so that nothing is created without it.
  const found = findPrograms();
  const chosen = resolve(options.dataDir ?? join(packageRoot, '.data'));
  const closers: (() => Promise<void>)[] = [];
  let isClosing = false;
  async function close(): Promise<void> {
    isClosing = true;
    for (const closeOne of closers.toReversed()) await closeOne();
  }
  try {
    await mkdir(chosen, { recursive: true });
    const dataDir = await realpath(chosen);
    await access(dataDir, constants.W_OK);
    const unlock = await takeLock(dataDir);
    closers.push(unlock);
    const socket = await openSocketFolder(join(dataDir, CLUSTER_FOLDER));
    closers.push(socket.close);
    // All options are given, so that the driver adds none of PGSSLMODE and PGOPTIONS, which concern other servers.
    const where = { host: socket.path, port: SOCKET_PORT, user: SUPERUSER, database: 'catalog' };
    const address = { ...where, ssl: false, options: '-c search_path=public' };
    const isJoined = await isServed(address, onLost === undefined);
    if (!isJoined) {
      const account = await postgresAccount(join(dataDir, CLUSTER_FOLDER));
      const programs = await preparePrograms(found, account);
      const cluster = await ensureCluster(dataDir, programs, account);
      const server = await startServer({ programs, cluster, account, logFile: join(dataDir, 'server.log'), address });
      closers.push(() => server.stop());
      void server.ended.then(() => {
        if (!isClosing) onLost?.(new OperatorError(`The embedded PostgreSQL in ${dataDir} ended unexpectedly.`));
      });
    }
    if (onLost || isJoined) await unlock();
    return { address, close };
  } catch (error) {
    await close();
    const { code = '', message } = error as NodeJS.ErrnoException;
    const reason = code in HINTS ? `${HINTS[code]} (${message})` : message;
    throw new OperatorError(`The embedded PostgreSQL cannot run in ${chosen}: ${reason}.`, {
      advice: 'Set DATA_DIR to another directory, or DATABASE_URL to a PostgreSQL of your own.',
      cause: error,
    });
  }
}

/** Whether a serving process runs a server that this one may join. Waits for a server that is about to stop. */
async function isServed(address: pg.ClientConfig, mayJoin: boolean): Promise<boolean> {
  const deadline = Date.now() + MAX_STOPPING_MS;
  for (;;) {
    const state = await probe(address);
    if (state === 'absent') return false;
    if (state === 'ready' && mayJoin) return true;
    if (Date.now() > deadline) throw new Error(HINTS.ELOCKED);
    await delay(50);
  }
}

/**
 * Takes the lock of a data directory: nobody else starts a server there meanwhile. A process that is suspended for long
 * may lose it. PostgreSQL then still refuses a second server. @returns releases the lock; may be called again
 */
async function takeLock(dataDir: string): Promise<() => Promise<void>> {
  const unlock = await lock(dataDir, {
    lockfilePath: join(dataDir, 'lock'),
    stale: 3_000,
    update: 1_000,
    retries: { forever: true, maxRetryTime: MAX_LOCKED_MS, minTimeout: 20, maxTimeout: 250, factor: 1.5 },
    // The default throws from a timer, and so ends the process.
    onCompromised: () => undefined,
  });
  return () => unlock().catch(() => undefined);
}

/** A path to a folder that is short enough for the address of a socket: its own or, if that is too long, a link's. */
async function openSocketFolder(folder: string): Promise<{ path: string; close: () => Promise<void> }> {
  const socket = join(folder, `.s.PGSQL.${SOCKET_PORT}`);
  if (Buffer.byteLength(socket) <= MAX_SOCKET_PATH) return { path: folder, close: () => Promise.resolve() };
  const temporary = await mkdtemp(join(tmpdir(), 'catalog-'));
  const path = join(temporary, 'data');
  await symlink(folder, path);
  return { path, close: () => rm(temporary, { recursive: true, force: true }) };
}
