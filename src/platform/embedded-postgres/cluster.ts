import { chmod, chown, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { OperatorError } from '../../errors.js';
import type { Binaries } from './binaries.js';
import { ensureCluster, lastLines, readPassword, SUPERUSER } from './cluster-creation.js';
import { runCommand } from './command.js';
import { CLUSTER_FOLDER, type DataDirectory } from './data-directory.js';
import { lockFileOf, readServerPort, readServerState } from './server-state.js';

/** The only address the server listens on: it is nobody's business beyond this machine. */
const HOST = '127.0.0.1';

/** Recovery after a crash included, in seconds. */
const START_TIMEOUT_S = 60;

/** A fast stop breaks connections off and writes a checkpoint, in seconds. */
const STOP_TIMEOUT_S = 30;

/** What a program may take beyond its own bound before it is killed, in milliseconds. */
const GRACE_MS = 10_000;

const MAX_PORT_ATTEMPTS = 5;
const POLL_INTERVAL_MS = 50;

/** A log that has grown beyond this is put aside at the next start, in bytes. */
const MAX_LOG_SIZE = 8 * 1024 * 1024;

/** Kept out of the cluster's configuration file, so that they are right whatever version made the cluster. */
const SERVER_SETTINGS = {
  listen_addresses: HOST,
  unix_socket_directories: '',
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_checkpoints: 'off',
};

/** How far a stop goes: `fast` writes everything down first, `immediate` leaves that to the next start. */
export type StopMode = 'fast' | 'immediate';

/** The PostgreSQL server of one data directory. Starting and stopping are to be done under the mutex. */
export class Cluster {
  /** The server's data. */
  readonly directory: string;
  readonly dataDirectory: string;
  /** The port that was read last; 0 before. */
  seenPort = 0;
  readonly #target;
  readonly #files;
  readonly #location: DataDirectory;
  readonly #prepareBinaries: () => Promise<Binaries>;

  /** @param prepareBinaries - called only when PostgreSQL must be started or stopped; joining a running one is quicker */
  constructor(location: DataDirectory, prepareBinaries: () => Promise<Binaries>) {
    this.#location = location;
    this.#prepareBinaries = prepareBinaries;
    this.dataDirectory = location.path;
    this.directory = join(location.path, CLUSTER_FOLDER);
    this.#target = ['-D', this.directory] as const;
    this.#files = { log: join(location.path, 'postgresql.log'), port: join(location.path, 'port') };
  }

  /**
   * Makes the cluster and starts its server, unless that is done already.
   *
   * @returns true when the server was started now
   * @throws OperatorError when that fails or takes too long
   */
  async ensureRunning(): Promise<boolean> {
    const deadline = Date.now() + START_TIMEOUT_S * 1000;
    for (;;) {
      const state = await readServerState(this.directory);
      if (state.phase === 'ready') return false;
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

  /** Where the server listens; while none runs, where the last one did. */
  async address(): Promise<{ host: string; port: number; user: string; password: string }> {
    const port = (await readServerPort(this.directory)) ?? (await this.#lastPort());
    if (port === undefined) throw new OperatorError(`No PostgreSQL has run in ${this.dataDirectory} yet.`);
    this.seenPort = port;
    return { host: HOST, port, user: SUPERUSER, password: await readPassword(this.dataDirectory) };
  }

  async #start(binaries: Binaries): Promise<void> {
    refuseForShell(this.#files.log);
    refuseForShell(binaries.pgCtl);
    const deadline = Date.now() + START_TIMEOUT_S * 1000;
    let port = (await this.#lastPort()) ?? (await freePort());
    let portAttempts = 0;
    for (;;) {
      await this.#prepareLog();
      const logStart = (await stat(this.#files.log)).size;
      const state = await readServerState(this.directory);
      if (state.phase === 'stopped' && state.stale) await rm(lockFileOf(this.directory), { force: true });
      const { exitCode, output } = await this.#run(
        binaries.pgCtl,
        ['start', ...this.#target, '-l', this.#files.log, '-o', serverOptions(port), ...waitFor(START_TIMEOUT_S)],
        START_TIMEOUT_S,
      );
      if (exitCode === 0) break;
      const log = (await readFile(this.#files.log)).subarray(logStart).toString();
      if (log.includes('Address already in use') && ++portAttempts < MAX_PORT_ATTEMPTS) {
        port = await freePort();
      } else if (/is still in use|lock file .* already exists/.test(log) && Date.now() < deadline) {
        // The processes of a server that was killed take a moment to notice.
        await delay(POLL_INTERVAL_MS * 4);
      } else {
        throw new OperatorError(
          `PostgreSQL does not start in ${this.dataDirectory}: ${lastLines(log) || lastLines(output)}\n` +
            `Its log is ${this.#files.log}`,
        );
      }
    }
    await this.#rememberPort(port);
  }

  /** The server's account must be able to write the log, and cannot make a file in our directory. */
  async #prepareLog(): Promise<void> {
    const { log } = this.#files;
    if (((await stat(log).catch(() => undefined))?.size ?? 0) > MAX_LOG_SIZE) await rename(log, `${log}.1`);
    const handle = await open(log, 'a', 0o600);
    await handle.close();
    const { account } = this.#location;
    if (account) await chown(log, account.uid, account.gid);
  }

  async #lastPort(): Promise<number | undefined> {
    const port = Number(await readFile(this.#files.port, 'utf8').catch(() => ''));
    return Number.isInteger(port) && port > 0 && port < 65536 ? port : undefined;
  }

  async #rememberPort(port: number): Promise<void> {
    const temporary = `${this.#files.port}.new`;
    await writeFile(temporary, `${port}\n`);
    await chmod(temporary, 0o644);
    await rename(temporary, this.#files.port);
  }

  #run(program: string, args: readonly string[], ownBoundInSeconds: number) {
    const timeoutMs = ownBoundInSeconds * 1000 + GRACE_MS;
    return runCommand(program, args, { account: this.#location.account, timeoutMs });
  }
}

/** pg_ctl hands these to a shell, so no value may need quoting. */
function serverOptions(port: number): string {
  const settings = Object.entries({ port: String(port), ...SERVER_SETTINGS });
  return settings.map(([name, value]) => `-c ${name}=${value}`).join(' ');
}

function waitFor(seconds: number): string[] {
  return ['-w', '-t', String(seconds)];
}

/** pg_ctl puts paths between double quotes in a shell command, where spaces are harmless and these are not. */
function refuseForShell(path: string): void {
  if (/["$`\\\n]/.test(path)) {
    throw new OperatorError(
      `PostgreSQL cannot be started with this path: ${path}. Use folders whose names have no quotes, dollar signs, ` +
        'backticks, backslashes or line ends.',
    );
  }
}

/** A port that nobody listens on now. Somebody may by the time it is used. */
function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, HOST, () => {
      const address = server.address();
      server.close(() => {
        if (address !== null && typeof address === 'object') resolve(address.port);
        else reject(new Error('No address'));
      });
    });
  });
}
