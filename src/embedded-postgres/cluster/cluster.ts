import { constants } from 'node:fs';
import { lstat, rename, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { OperatorError } from '../../errors.js';
import type { Binaries } from '../binaries.js';
import { ensureCluster, lastLines, SUPERUSER } from './cluster-creation.js';
import { runCommand } from '../command.js';
import { CLUSTER_FOLDER, type DataDirectory } from './data-directory.js';
import { giveTo, openOwnFile, replaceOwnFile } from './own-files.js';
import { lockFileOf, readServerState, SOCKET_FOLDER, SOCKET_PORT } from './server-state.js';
import { openSocketFolder, type SocketFolder } from './socket-folder.js';

/** Includes the recovery after a crash. In seconds. */
const START_TIMEOUT_S = 60;

/** A fast stop ends connections and writes a checkpoint. In seconds. */
const STOP_TIMEOUT_S = 30;

/** How much longer than its own bound a program may take before it is killed, in milliseconds. */
const GRACE_MS = 10_000;

const POLL_INTERVAL_MS = 50;

/** A log that is larger than this is renamed at the next start, in bytes. */
const MAX_LOG_SIZE = 8 * 1024 * 1024;

/** Passed on the command line, so that they are right whatever version wrote the cluster's configuration file. */
const SERVER_SETTINGS = {
  port: String(SOCKET_PORT),
  unix_socket_directories: SOCKET_FOLDER,
  unix_socket_permissions: '0700',
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_checkpoints: 'off',
};

/** Who may connect, and where. */
export interface ServerAccess {
  /** Settings of the server, none of which needs quoting in a shell. */
  readonly settings: Readonly<Record<string, string>>;
  /** The text of `pg_hba.conf`. */
  readonly rules: string;
}

/**
 * The server accepts every process that reaches its socket, which lies in the folder of the data. Only root and
 * PostgreSQL's account may enter that folder. So no other process can take the server's place, and nobody needs a
 * password.
 */
const SOCKET_ONLY: ServerAccess = { settings: { listen_addresses: '' }, rules: 'local all all trust\n' };

/** How the server stops: `fast` writes everything to the disk first, `immediate` leaves that to the next start. */
export type StopMode = 'fast' | 'immediate';

/** The PostgreSQL server of one data directory. Start and stop it under the mutex. */
export class Cluster {
  /** The server's data. */
  readonly directory: string;
  readonly dataDirectory: string;
  readonly #target;
  readonly #files;
  readonly #location: DataDirectory;
  readonly #prepareBinaries: () => Promise<Binaries>;
  readonly #settings: Readonly<Record<string, string>>;
  readonly #rules: string;
  #socketFolder: Promise<SocketFolder> | undefined;

  /**
   * @param prepareBinaries - called only when PostgreSQL must be started or stopped; joining a running server is
   *   quicker
   * @param access - for tests, which reach their servers by TCP
   */
  constructor(location: DataDirectory, prepareBinaries: () => Promise<Binaries>, access = SOCKET_ONLY) {
    this.#location = location;
    this.#prepareBinaries = prepareBinaries;
    this.#settings = { ...SERVER_SETTINGS, ...access.settings };
    this.#rules = access.rules;
    this.dataDirectory = location.path;
    this.directory = join(location.path, CLUSTER_FOLDER);
    this.#target = ['-D', this.directory] as const;
    this.#files = { log: join(location.path, 'postgresql.log'), rules: join(location.path, 'pg_hba.conf') };
  }

  /**
   * Makes the cluster and starts its server, unless that is done.
   *
   * @returns true when this call started the server
   * @throws OperatorError when that fails or takes too long
   */
  async ensureRunning(): Promise<boolean> {
    const deadline = Date.now() + START_TIMEOUT_S * 1000;
    for (;;) {
      const state = await readServerState(this.directory);
      if (state.phase === 'ready') {
        if (state.hasSocket) return false;
        throw new OperatorError(
          `The PostgreSQL in ${this.dataDirectory} (process ${state.pid}) was started by an earlier version of the service. ` +
            `Stop that version; if it has ended already, stop PostgreSQL with: kill -INT ${state.pid}`,
        );
      }
      if (state.phase === 'stopped') break;
      if (Date.now() > deadline) {
        throw new OperatorError(
          `PostgreSQL (process ${state.pid}) in ${this.dataDirectory} has been ${state.phase} for more than ` +
            `${START_TIMEOUT_S} s. Its log is ${this.#files.log}`,
        );
      }
      await delay(POLL_INTERVAL_MS);
    }
    const binaries = await this.#prepareBinaries();
    await ensureCluster(this.#location, binaries);
    await this.#start(binaries);
    return true;
  }

  /**
   * Stops the server, if it runs, and waits for it.
   *
   * @throws OperatorError when it does not stop in time
   */
  async stop(mode: StopMode = 'fast'): Promise<void> {
    if ((await readServerState(this.directory)).phase === 'stopped') return;
    const { pgCtl } = await this.#prepareBinaries();
    const { exitCode, output } = await this.#run(
      pgCtl,
      ['stop', ...this.#target, '-m', mode, ...waitFor(STOP_TIMEOUT_S)],
      STOP_TIMEOUT_S,
    );
    if (exitCode !== 0 && (await readServerState(this.directory)).phase !== 'stopped') {
      throw new OperatorError(`PostgreSQL in ${this.dataDirectory} does not stop: ${lastLines(output)}`);
    }
  }

  /** The address of the server, whether it runs or not. The cluster must exist. */
  async address(): Promise<{ host: string; port: number; user: string; password: () => never }> {
    this.#socketFolder ??= openSocketFolder(this.directory);
    const { path } = await this.#socketFolder;
    return { host: path, port: Number(this.#settings.port), user: SUPERUSER, password: refusePassword };
  }

  /** Closes the way to the socket. Close all connections first. */
  async close(): Promise<void> {
    const folder = this.#socketFolder;
    this.#socketFolder = undefined;
    await (await folder)?.close();
  }

  async #start(binaries: Binaries): Promise<void> {
    refuseForShell(this.#files.log);
    refuseForShell(binaries.pgCtl);
    await replaceOwnFile(this.#files.rules, this.#rules);
    const deadline = Date.now() + START_TIMEOUT_S * 1000;
    for (;;) {
      const log = await this.#openLog();
      try {
        const logStart = (await log.stat()).size;
        const state = await readServerState(this.directory);
        if (state.phase === 'stopped' && state.stale) await this.#removeStaleLock();
        const { exitCode, output } = await this.#run(
          binaries.pgCtl,
          ['start', ...this.#target, '-l', this.#files.log, '-o', this.#serverOptions(), ...waitFor(START_TIMEOUT_S)],
          START_TIMEOUT_S,
        );
        if (exitCode === 0) return;
        const logged = (await readFrom(log, logStart)) || output;
        // The processes of a killed server take a moment to notice.
        if (!/is still in use|lock file .* already exists/.test(logged) || Date.now() > deadline) {
          throw new OperatorError(
            `PostgreSQL does not start in ${this.dataDirectory}: ${lastLines(logged)}\nIts log is ${this.#files.log}`,
          );
        }
      } finally {
        await log.close();
      }
      await delay(POLL_INTERVAL_MS * 4);
    }
  }

  /** The server's account must be able to write the log, but cannot make a file in our directory. */
  async #openLog(): Promise<FileHandle> {
    const { log } = this.#files;
    if (((await lstat(log).catch(() => undefined))?.size ?? 0) > MAX_LOG_SIZE) await rename(log, `${log}.1`);
    const handle = await openOwnFile(log, constants.O_RDWR | constants.O_APPEND | constants.O_CREAT);
    await giveTo(handle, this.#location.account);
    return handle;
  }

  /** As the server's account: the file lies in a folder of its own. */
  async #removeStaleLock(): Promise<void> {
    await this.#run('rm', ['-f', '--', lockFileOf(this.directory)], 0);
  }

  /** pg_ctl passes these to a shell. No setting needs quoting, and {@link refuseForShell} accepts the path. */
  #serverOptions(): string {
    const settings = Object.entries(this.#settings).map(([name, value]) => `-c ${name}=${value}`);
    return [...settings, `-c "hba_file=${this.#files.rules}"`].join(' ');
  }

  #run(program: string, args: readonly string[], ownBoundInSeconds: number) {
    const timeoutMs = ownBoundInSeconds * 1000 + GRACE_MS;
    return runCommand(program, args, { account: this.#location.account, timeoutMs });
  }
}

function waitFor(seconds: number): string[] {
  return ['-w', '-t', String(seconds)];
}

/** pg_ctl puts paths between double quotes in a shell command. Spaces are harmless there; these characters are not. */
function refuseForShell(path: string): void {
  if (/["$`\\\n]/.test(path)) {
    throw new OperatorError(
      `PostgreSQL cannot be started with this path: ${path}. Use folders whose names have no quotes, dollar signs, ` +
        'backticks, backslashes or line ends.',
    );
  }
}

async function readFrom(log: FileHandle, position: number): Promise<string> {
  const length = (await log.stat()).size - position;
  const { buffer, bytesRead } = await log.read(Buffer.alloc(length), 0, length, position);
  return buffer.toString('utf8', 0, bytesRead);
}

/** The driver calls this when a server asks for a password, instead of sending that of PGPASSWORD or ~/.pgpass. */
function refusePassword(): never {
  throw new OperatorError(
    'Another program answers in place of the embedded PostgreSQL: it asks for a password, and the embedded one has none. Find out which program.',
  );
}
