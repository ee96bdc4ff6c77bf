import { writeSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { DestinationStream } from 'pino';

/** A pipe takes this many bytes whole or not at all (pipe(7)). So the lines of several processes do not mix. */
const PIECE_BYTES = 4_096;

/** Bound on what waits for a reader, in bytes: 4,000 common lines. */
const MAX_WAITING_BYTES = 1_048_576;

/** How often writing is tried while no new line arrives, in milliseconds. */
const RETRY_MS = 100;

/** How long a full pipe is not tried again, in milliseconds: each attempt costs as much as a short request. */
const FULL_MS = 1;

/** The least time between two messages to the operator, in milliseconds. */
const WARNING_INTERVAL_MS = 60_000;

const NEWLINE = 0x0a;

/** Why a write failed: the pipe is full, nobody reads it, or something else, such as a full disk. */
type WriteFailure = 'full' | 'unread' | 'broken';

const WRITE_FAILURES: Readonly<Record<string, WriteFailure>> = {
  EAGAIN: 'full',
  EBUSY: 'full',
  EPIPE: 'unread',
  ECONNRESET: 'unread',
};

export interface LogOutputOptions {
  readonly lossLine: (lines: number) => string;
  /** Warns the operator, by another way than the log, that lines are lost, and why. Must neither wait nor throw. */
  readonly warn: (message: string) => void;
  /** Called once, when nobody reads the log any more. */
  readonly onUnread: () => void;
}

/**
 * Writes a log to a file descriptor and never waits for its reader. It keeps what a pipe cannot take yet, up to a
 * bound. It drops and counts lines beyond the bound, and lines that a full disk refuses. As soon as it can write again,
 * it writes a line with the number of missing lines.
 *
 * Not sonic-boom, pino's own destination: that keeps lines which a full disk refuses, and does not count lost lines.
 */
export class LogOutput implements DestinationStream {
  /** Lines that the pipe could not take; it may have taken a part of the first. */
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #dropped = 0;
  /** Dropped lines that no line of the log has counted yet. */
  #unreported = 0;
  #nextWarningAt = -Infinity;
  #failure: WriteFailure | undefined;
  #reason = '';
  #endsMidLine = false;
  #fullUntil = -Infinity;
  #retry: NodeJS.Timeout | undefined;

  /** @param fd - non-blocking if it is a pipe or a socket: Node.js makes that of `process.stdout` */
  constructor(
    private readonly fd: number,
    private readonly options: LogOutputOptions,
  ) {}

  get dropped(): number {
    return this.#dropped;
  }

  /** Writes whole lines, keeps them or drops them. Never throws. */
  write(lines: string): void {
    const bytes = Buffer.from(lines);
    if (this.#isBehind && performance.now() > this.#fullUntil) this.#catchUp();
    if (this.#unreported > 0 && this.#waiting.length === 0) {
      // Nothing can be written, not even the number of missing lines.
      this.#drop(bytes);
    } else if (this.#waitingBytes + bytes.length > MAX_WAITING_BYTES) {
      this.#reason = 'its reader does not keep up';
      this.#drop(bytes);
    } else {
      const isFirst = this.#waiting.length === 0;
      this.#keep(bytes);
      if (isFirst) this.#writeWaiting();
    }
    if (this.#isBehind && this.#retry === undefined) this.#tryLater();
  }

  /** Waits until the reader has taken what is kept. @param atMostMs - bound on the wait, in milliseconds */
  async settle(atMostMs: number): Promise<void> {
    const deadline = performance.now() + atMostMs;
    while (this.#waiting.length > 0 && performance.now() < deadline) {
      await delay(RETRY_MS);
      this.#catchUp();
    }
  }

  get #isBehind(): boolean {
    return this.#waiting.length > 0 || this.#unreported > 0;
  }

  #keep(bytes: Buffer): void {
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
  }

  #tryLater(): void {
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      this.#catchUp();
      if (this.#isBehind) this.#tryLater();
    }, RETRY_MS).unref();
  }

  /** Writes what is kept, and then the number of missing lines. */
  #catchUp(): void {
    this.#writeWaiting();
    if (this.#unreported === 0 || this.#waiting.length > 0) return;
    const line = Buffer.from((this.#endsMidLine ? '\n' : '') + this.options.lossLine(this.#unreported));
    const written = this.#put(line);
    if (written < line.length && this.#failure !== 'full') return;
    this.#unreported = 0;
    if (written < line.length) this.#keep(line.subarray(written));
  }

  /** Writes as much of what is kept as is possible now. */
  #writeWaiting(): void {
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      const written = this.#put(first);
      this.#waitingBytes -= written;
      if (written === first.length) {
        this.#waiting.shift();
        continue;
      }
      this.#waiting[0] = first.subarray(written);
      if (this.#failure !== 'full') {
        this.#waitingBytes = 0;
        this.#drop(...this.#waiting.splice(0));
      }
      return;
    }
  }

  /** @returns how many bytes were written; if not all, the failure is set */
  #put(bytes: Buffer): number {
    let written = 0;
    try {
      while (written < bytes.length) {
        written += writeSync(this.fd, bytes, written, endOfPiece(bytes, written) - written);
      }
      this.#failure = undefined;
    } catch (error) {
      this.#noteFailure(error as NodeJS.ErrnoException);
    }
    if (written > 0) this.#endsMidLine = bytes[written - 1] !== NEWLINE;
    return written;
  }

  #noteFailure({ code = '', message }: NodeJS.ErrnoException): void {
    const before = this.#failure;
    this.#fullUntil = performance.now() + FULL_MS;
    this.#failure = WRITE_FAILURES[code] ?? 'broken';
    this.#reason = message;
    if (this.#failure === 'unread' && before !== 'unread') this.options.onUnread();
  }

  #drop(...dropped: readonly Buffer[]): void {
    const lines = dropped.reduce((sum, bytes) => sum + countLines(bytes), 0);
    this.#dropped += lines;
    this.#unreported += lines;
    const now = performance.now();
    if (now < this.#nextWarningAt || this.#failure === 'unread') return;
    this.#nextWarningAt = now + WARNING_INTERVAL_MS;
    this.options.warn(`Lines of the log are dropped, and counted: ${this.#reason}.`);
  }
}

/** @returns where the next piece ends: as many whole lines as a pipe takes at once, or one longer line */
function endOfPiece(bytes: Buffer, start: number): number {
  if (bytes.length - start <= PIECE_BYTES) return bytes.length;
  const lastNewline = bytes.lastIndexOf(NEWLINE, start + PIECE_BYTES - 1);
  if (lastNewline >= start) return lastNewline + 1;
  const nextNewline = bytes.indexOf(NEWLINE, start + PIECE_BYTES);
  return nextNewline < 0 ? bytes.length : nextNewline + 1;
}

function countLines(bytes: Buffer): number {
  let lines = 0;
  for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, at + 1)) lines += 1;
  return lines;
}
