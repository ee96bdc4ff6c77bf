import { writeSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { DestinationStream } from 'pino';

/** A pipe takes so many bytes whole or not at all (Linux, pipe(7)): lines of several processes do not mix in it. */
const PIECE_BYTES = 4_096;

/** Bound on what waits for a reader, in bytes: 4,000 common lines. */
const MAX_WAITING_BYTES = 1_048_576;

/** How often writing is tried while nothing new is to be written, in milliseconds. */
const RETRY_MS = 100;

/** How long a pipe that was full is not tried again, in milliseconds: each time costs as much as a short request. */
const FULL_MS = 1;

/** Between two messages to the operator at least, in milliseconds. */
const TELL_INTERVAL_MS = 60_000;

const NEWLINE = 0x0a;

/** What stands in the way: a full pipe, a pipe that nobody reads any more, or anything else, such as a full disk. */
type Obstacle = 'full' | 'unread' | 'broken';

const OBSTACLES: Readonly<Record<string, Obstacle>> = {
  EAGAIN: 'full',
  EBUSY: 'full',
  EPIPE: 'unread',
  ECONNRESET: 'unread',
};

/** What the owner of a log has to say. */
export interface LogOutputOptions {
  /** Makes the line of the log that tells how many lines were dropped. */
  readonly lossLine: (lines: number) => string;
  /** Tells the operator by another way than the log that lines get lost, and why. Must neither wait nor throw. */
  readonly tell: (message: string) => void;
  /** Called once, when nobody reads the log any more. */
  readonly onUnread: () => void;
}

/**
 * Writes a log to a file descriptor and never waits for its reader. It keeps what a pipe cannot take yet, up to a
 * bound. It drops and counts lines beyond the bound, and lines that a full disk refuses. Once lines can be written again,
 * one of them says how many are missing.
 */
export class LogOutput implements DestinationStream {
  readonly #fd: number;
  readonly #options: LogOutputOptions;
  /** Lines that a pipe could not take; of the first ones it may have taken a part. */
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #dropped = 0;
  /** How many of those dropped no line of the log has told of yet. */
  #untold = 0;
  #nextTellAt = -Infinity;
  #obstacle: Obstacle | undefined;
  #reason = '';
  #endsMidLine = false;
  #fullUntil = -Infinity;
  #retry: NodeJS.Timeout | undefined;

  /** @param fd - of a pipe or a socket only where it does not block: Node.js has made that of `process.stdout` */
  constructor(fd: number, options: LogOutputOptions) {
    this.#fd = fd;
    this.#options = options;
  }

  /** How many lines were dropped so far. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Writes whole lines, keeps or drops them. Never throws. */
  write(lines: string): void {
    const bytes = Buffer.from(lines);
    if (this.#isBehind && performance.now() > this.#fullUntil) this.#catchUp();
    if (this.#untold > 0 && this.#waiting.length === 0) {
      // It was just found that nothing can be written, not even how many lines are missing.
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

  /** Waits until a reader has taken what is kept for it. @param atMostMs - bound on it, in milliseconds */
  async settle(atMostMs: number): Promise<void> {
    const deadline = performance.now() + atMostMs;
    while (this.#waiting.length > 0 && performance.now() < deadline) {
      await delay(RETRY_MS);
      this.#catchUp();
    }
  }

  get #isBehind(): boolean {
    return this.#waiting.length > 0 || this.#untold > 0;
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

  /** Writes what is kept, and then how many lines are missing behind it. */
  #catchUp(): void {
    this.#writeWaiting();
    if (this.#untold === 0 || this.#waiting.length > 0) return;
    const line = Buffer.from((this.#endsMidLine ? '\n' : '') + this.#options.lossLine(this.#untold));
    const written = this.#put(line);
    if (written < line.length && this.#obstacle !== 'full') return;
    this.#untold = 0;
    if (written < line.length) this.#keep(line.subarray(written));
  }

  /** Writes what is kept as far as it can be written now. */
  #writeWaiting(): void {
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      const written = this.#put(first);
      this.#waitingBytes -= written;
      if (written === first.length) {
        this.#waiting.shift();
        continue;
      }
      this.#waiting[0] = first.subarray(written);
      if (this.#obstacle !== 'full') {
        this.#waitingBytes = 0;
        this.#drop(...this.#waiting.splice(0));
      }
      return;
    }
  }

  /** @returns how many bytes could be written; where it is not all, the obstacle is known */
  #put(bytes: Buffer): number {
    let written = 0;
    try {
      while (written < bytes.length) {
        written += writeSync(this.#fd, bytes, written, endOfPiece(bytes, written) - written);
      }
      this.#obstacle = undefined;
    } catch (error) {
      this.#meet(error as NodeJS.ErrnoException);
    }
    if (written > 0) this.#endsMidLine = bytes[written - 1] !== NEWLINE;
    return written;
  }

  #meet({ code = '', message }: NodeJS.ErrnoException): void {
    const before = this.#obstacle;
    this.#fullUntil = performance.now() + FULL_MS;
    this.#obstacle = OBSTACLES[code] ?? 'broken';
    this.#reason = message;
    if (this.#obstacle === 'unread' && before !== 'unread') this.#options.onUnread();
  }

  #drop(...dropped: readonly Buffer[]): void {
    const lines = dropped.reduce((sum, bytes) => sum + countLines(bytes), 0);
    this.#dropped += lines;
    this.#untold += lines;
    const now = performance.now();
    if (now < this.#nextTellAt || this.#obstacle === 'unread') return;
    this.#nextTellAt = now + TELL_INTERVAL_MS;
    this.#options.tell(`Lines of the log are dropped, and counted: ${this.#reason}.`);
  }
}

/** @returns where the piece that begins here ends: as many whole lines as a pipe takes at once, or one that is longer */
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
