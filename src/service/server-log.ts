import { once } from 'node:events';
import pino, { type Logger } from 'pino';
import { OperatorError } from '../errors.js';
import { withTimeout } from '../platform/async/with-timeout.js';
import { createLog } from '../platform/telemetry/log.js';
import { printable, printableLines } from '../platform/text/plain-text.js';
import type { Config } from '../config/settings.js';

/** Bound on lines that wait for a reader, in bytes: 4,000 common lines. Later lines are dropped. */
const MAX_WAITING_BYTES = 1_048_576;

/** A pipe takes this many bytes whole or not at all (pipe(7)), which keeps the lines of several processes apart. */
const MAX_WRITE_BYTES = 4_096;

/** How long the end of the process waits for a reader of the last lines, in milliseconds. */
const LAST_LINES_MS = 1_000;

const STDOUT = 1;

/** The process that the log belongs to. */
interface LogProcess {
  readonly stdout: { readonly isTTY?: boolean; readonly fd?: number; readonly hasColors?: () => boolean };
  /** Aborted when the process must end. */
  readonly signal: AbortSignal;
  /** Runs a function at the very end of the process, in any case. The function cannot wait. */
  readonly atExit: (act: () => void) => void;
}

/** `blocked` while its reader or the disk takes nothing; `broken` once nothing more will be written. */
type State = 'open' | 'blocked' | 'broken' | 'closed';

/**
 * Opens the log on standard output. Writing it never waits: lines that its reader or the disk cannot take yet are kept
 * up to a bound, and further lines are dropped and counted.
 */
export async function openServerLog(process: LogProcess, { logLevel, logFormat }: Config): Promise<ServerLog> {
  const { stdout } = process;
  const isForPeople = logFormat === 'auto' && stdout.isTTY === true;
  return new ServerLog(
    process,
    logLevel,
    isForPeople ? await terminalFormatter(stdout.hasColors?.() === true) : String,
  );
}

export class ServerLog {
  readonly log: Logger;
  /** Aborted when the server must end: on a signal, or when nothing reads the log any more. */
  readonly ending: AbortSignal;
  readonly #unread = new AbortController();
  readonly #destination: ReturnType<typeof pino.destination>;
  #state: State = 'open';
  /** Whether lines wait to be written. */
  #isWaiting = false;
  #dropped = 0;
  #unreported = 0;

  constructor({ stdout, signal, atExit }: LogProcess, level: string, format: (line: string) => string) {
    // Before pino's own: its flush at the exit would never end while nothing can be written.
    atExit(() => this.#flush());
    this.#destination = pino
      .destination({
        dest: stdout.fd ?? STDOUT,
        sync: false,
        maxLength: MAX_WAITING_BYTES,
        maxWrite: MAX_WRITE_BYTES,
        retryEAGAIN: () => {
          if (this.#state === 'open') this.#state = 'blocked';
          return this.#state === 'blocked';
        },
      })
      .on('write', () => {
        if (this.#state === 'blocked') this.#state = 'open';
      })
      .on('drain', () => this.#reportDrops())
      .on('drop', () => {
        this.#dropped += 1;
        this.#unreported += 1;
      })
      .on('error', ({ code }: NodeJS.ErrnoException) => {
        const isUnread = code === 'EPIPE' || code === 'ECONNRESET';
        this.#state = isUnread || this.#state === 'closed' ? 'broken' : 'blocked';
        if (isUnread) this.#unread.abort();
      });
    this.ending = AbortSignal.any([signal, this.#unread.signal]);
    this.log = createLog(level, { write: (line) => this.write(format(line)) });
  }

  /** How many lines were dropped so far. */
  readonly droppedLines = (): number => this.#dropped;

  /** Writes a text for people among the lines. */
  write(text: string): void {
    this.#isWaiting = true;
    this.#destination.write(text);
  }

  /** Waits for the last lines, within a bound. @throws OperatorError when nothing reads the log any more */
  async close(): Promise<void> {
    if (this.#isWaiting && !this.#unread.signal.aborted) {
      // Its timer keeps the process. That of AbortSignal.timeout() does not: with nothing else left to wait for, Node.js
      // would exit with code 13.
      await withTimeout(once(this.#destination, 'drain'), LAST_LINES_MS).catch(() => undefined);
    }
    this.#state = this.#state === 'open' ? 'closed' : 'broken';
    if (this.#unread.signal.aborted) {
      throw new OperatorError('Nothing is reading the log on standard output any more; the server has stopped.');
    }
  }

  #reportDrops(): void {
    this.#isWaiting = false;
    const lines = this.#unreported;
    this.#unreported = 0;
    if (lines > 0) this.log.warn({ dropped_lines: lines }, 'log lines were dropped before this one');
  }

  #flush(): void {
    const takesLines = this.#state === 'open' || this.#state === 'closed';
    this.#state = 'closed';
    try {
      if (takesLines) this.#destination.flushSync();
    } catch {
      // The reader is too slow for the last lines.
    }
    this.#destination.destroy();
  }
}

/**
 * Makes lines of the log readable for people. Nothing that a client sent can control the terminal or pass for a line of
 * its own.
 *
 * @returns a function from a line of JSON to text, each with its line end
 */
export async function terminalFormatter(hasColors: boolean): Promise<(line: string) => string> {
  // Only a server on a terminal loads it.
  const { default: prettyLog } = await import('pino-pretty');
  const format = prettyLog.prettyFactory({
    colorize: hasColors,
    // A start names every migration that it has applied.
    ignore: 'pid,applied_migrations',
    singleLine: true,
    translateTime: 'SYS:HH:MM:ss.l',
  });
  const makeSafe = (text: string, name: string): string => (name === 'stack' ? printableLines(text) : printable(text));
  return (line) =>
    format(
      JSON.parse(line, (name, value: unknown) => (typeof value === 'string' ? makeSafe(value, name) : value)) as object,
    );
}
