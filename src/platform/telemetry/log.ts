import pino, { type DestinationStream, type Logger, type LoggerOptions } from 'pino';

export interface Logs {
  readonly log: Logger;
  /** Writes the lines that still wait: for the end of the process, which may come at any moment. */
  readonly flush: () => void;
  readonly droppedLines: () => number;
}

/** Where lines go, and how many it has dropped; undefined for none. */
export type Destination = DestinationStream & { readonly dropped?: number };

/**
 * Makes the service's log: one JSON document a line, times in RFC 3339.
 *
 * @param level - the least level that is written
 * @param destination - where lines go
 * @param members - what every line carries
 */
export function createLog(level: string, destination: Destination, members: object = {}): Logs {
  const buffer = new LineBuffer(destination);
  return {
    log: pino(optionsOf(level, members), buffer),
    flush: () => buffer.flush(),
    droppedLines: () => destination.dropped ?? 0,
  };
}

/** Makes the line with the number of lines that are missing before it. @param members - what every line carries */
export function lossLine(members: object): (lines: number) => string {
  let line = '';
  const log = pino(optionsOf('warn', members), { write: (text) => (line = text) });
  return (lines) => {
    log.warn({ dropped_lines: lines }, 'lines of the log were dropped before this one');
    return line;
  };
}

function optionsOf(level: string, members: object): LoggerOptions {
  return {
    level,
    base: members,
    timestamp: pino.stdTimeFunctions.isoTime,
    // A plain object is an error that was already described.
    serializers: { err: (error: unknown) => (isPlainObject(error) ? error : describeError(error)) },
  };
}

/** The longest text that waits for more lines, in characters. */
const MAX_BUFFERED = 65_536;

/**
 * Buffers lines until all that has arrived is handled, and writes them together. Each write is a system call, a tenth
 * of the time of a short request.
 */
class LineBuffer {
  #lines = '';

  constructor(private readonly destination: DestinationStream) {}

  write(line: string): void {
    if (this.#lines === '') setImmediate(() => this.flush());
    this.#lines += line;
    if (this.#lines.length > MAX_BUFFERED) this.flush();
  }

  flush(): void {
    const lines = this.#lines;
    if (lines === '') return;
    this.#lines = '';
    this.destination.write(lines);
  }
}

/**
 * Describes an error by its name, message, code, stack and cause. Drivers attach connections and queries to their
 * errors, so other properties stay out.
 */
export function describeError(error: unknown): object {
  if (!(error instanceof Error)) return { message: String(error) };
  const { code } = error as { readonly code?: unknown };
  return {
    type: error.name,
    message: error.message,
    code: typeof code === 'string' || typeof code === 'number' ? code : undefined,
    stack: error.stack,
    cause: error.cause === undefined ? undefined : describeError(error.cause),
  };
}

function isPlainObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}
