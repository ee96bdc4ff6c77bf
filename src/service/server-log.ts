import { once } from 'node:events';
import pino, { type Logger } from 'pino';
import { OperatorError } from '../errors.js';
import { withTimeout } from '../platform/async/with-timeout.js';
import { createLog } from '../platform/telemetry/log.js';
import { printable, printableLines } from '../platform/text/plain-text.js';
import type { Config } from '../config/settings.js';

/** Bound on what waits for a reader, in bytes: 4,000 common lines. Later lines are dropped. */
const MAX_WAITING_BYTES = 1_048_576;

/** A pipe takes this many bytes whole or not at all (pipe(7)), which keeps the lines of several processes apart. */
const MAX_WRITE_BYTES = 4_096;

/** How long the end of the process waits for a reader of the last lines, in milliseconds. */
const LAST_LINES_MS = 1_000;

const STDOUT = 1;

/** What the log needs of its process. */
interface LogProcess {
  readonly stdout: { readonly isTTY?: boolean; readonly fd?: number; readonly hasColors?: () => boolean };
  /** Aborted when the process must end. */
  readonly signal: AbortSignal;
  /** Runs a function at the very end of the process, in any case. The function cannot wait. */
  readonly atExit: (act: () => void) => void;
}

export interface ServerLog {
  readonly log: Logger;
  /** How many lines were dropped so far. */
  readonly droppedLines: () => number;
  /** Writes a text for people among the lines. */
  readonly write: (text: string) => void;
  /** Aborted when the server must end: on a signal, or when nobody reads the log any more. */
  readonly ending: AbortSignal;
  /** Waits for the last lines, within a bound. @throws OperatorError when nobody reads the log any more */
  close(): Promise<void>;
}

/**
 * Opens the log on standard output. Writing it never waits: lines that its reader or the disk cannot take yet are kept
 * up to a bound, and further lines are dropped and counted.
 */
export async function openServerLog(
  { stdout, signal, atExit }: LogProcess,
  { logLevel, logFormat }: Config,
): Promise<ServerLog> {
  const isForPeople = logFormat === 'auto' && stdout.isTTY === true;
  const format = isForPeople ? await terminalFormatter(stdout.hasColors?.() === true) : String;
  const unread = new AbortController();
  let isWaiting = false;
  let isFlowing = true;
  let isClosed = false;
  let dropped = 0;
  let unreported = 0;

  // Before pino's own: its flush at the exit would never end while nothing can be written.
  atExit(() => {
    isClosed = true;
    try {
      if (isFlowing) destination.flushSync();
    } catch {
      // The reader is too slow for the last lines.
    }
    destination.destroy();
  });
  const destination = pino.destination({
    dest: stdout.fd ?? STDOUT,
    sync: false,
    maxLength: MAX_WAITING_BYTES,
    maxWrite: MAX_WRITE_BYTES,
    retryEAGAIN: () => {
      isFlowing = false;
      return !isClosed;
    },
  });
  destination.on('write', () => (isFlowing = true));
  destination.on('drain', () => {
    isWaiting = false;
    if (unreported === 0) return;
    const lines = unreported;
    unreported = 0;
    log.warn({ dropped_lines: lines }, 'log lines were dropped before this one');
  });
  destination.on('drop', () => {
    dropped += 1;
    unreported += 1;
  });
  destination.on('error', (error: NodeJS.ErrnoException) => {
    isFlowing = false;
    if (error.code === 'EPIPE' || error.code === 'ECONNRESET') unread.abort();
  });

  function write(text: string): void {
    isWaiting = true;
    destination.write(text);
  }

  const log = createLog(logLevel, { write: (line) => write(format(line)) });
  return {
    log,
    droppedLines: () => dropped,
    write,
    ending: AbortSignal.any([signal, unread.signal]),
    async close() {
      if (isWaiting && !unread.signal.aborted) {
        // Its timer keeps the process. That of AbortSignal.timeout() does not: with nothing else left to wait for,
        // Node.js would exit with code 13.
        await withTimeout(once(destination, 'drain'), LAST_LINES_MS).catch(() => undefined);
      }
      isClosed = true;
      if (unread.signal.aborted) {
        throw new OperatorError('Nothing is reading the log on standard output any more; the server has stopped.');
      }
    },
  };
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
    ignore: 'pid',
    singleLine: true,
    translateTime: 'SYS:HH:MM:ss.l',
  });
  const makeSafe = (text: string, name: string): string => (name === 'stack' ? printableLines(text) : printable(text));
  return (line) =>
    format(
      JSON.parse(line, (name, value: unknown) => (typeof value === 'string' ? makeSafe(value, name) : value)) as object,
    );
}
