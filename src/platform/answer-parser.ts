import { isAscii } from 'node:buffer';
import type { Readable } from 'node:stream';
import type pg from 'pg';
import { Parser } from 'pg-protocol/dist/parser.js';

type OnMessage = Parameters<Parser['parse']>[1];

const EMPTY = Buffer.alloc(0);

/** How much is decoded at once, in bytes: as much as arrives at once. */
const WINDOW = 64 * 1024;

const NOT_ASCII = /[^\0-\x7f]/g;

/**
 * Makes a connection read what the server sends through an {@link AnswerParser} instead of the driver's own parser. To be
 * called before it connects. Its event `message`, which the driver itself does not listen to, is left out.
 */
export function readFast(connection: pg.Connection): void {
  const attachListeners = (stream: Readable): void => {
    const parser = new AnswerParser();
    stream.on('data', (chunk: Buffer) => {
      try {
        parser.parse(chunk, (message) => {
          connection.emit(message.name === 'error' ? 'errorMessage' : message.name, message);
        });
      } catch (error) {
        if (!(error instanceof BrokenMessage)) throw error;
        // Nothing that follows can be understood either.
        stream.destroy(error);
      }
    });
  };
  Object.assign(connection, { attachListeners });
}

/**
 * The driver's parser of messages, with another way to take texts out of them.
 *
 * The driver has Node decode each field on its own, and such a call costs more than most fields are long: a quarter of the
 * time of a page of the feed, which has a thousand (https://github.com/brianc/node-postgres/pull/3773).
 */
export class AnswerParser extends Parser {
  readonly #fields = new FieldReader();

  constructor() {
    super();
    Object.assign(this, { reader: this.#fields });
  }

  override parse(chunk: Buffer, onMessage: OnMessage): void {
    try {
      super.parse(chunk, onMessage);
    } finally {
      // The same buffer may come again with other content.
      this.#fields.forget();
    }
  }
}

/**
 * Reads the fields of messages, in place of the driver's BufferReader. What has arrived together is decoded at once, and a
 * field is cut out of that text where it is ASCII; where it is not, it is decoded on its own.
 *
 * A text that was cut out keeps the whole in memory for as long as it is kept itself: 64 KiB at most.
 */
class FieldReader {
  #buffer: Buffer = EMPTY;
  #offset = 0;
  /** Part of the buffer, a character for each byte, and where it begins and ends. */
  #text = '';
  #textStart = 0;
  #textEnd = 0;
  /** Where the next byte that is not ASCII is in the text, as seen from the last field. */
  #nextWide = Infinity;

  /** Forgets what was decoded. To be called whenever the buffer may have changed. */
  forget(): void {
    this.#text = '';
    this.#textEnd = 0;
  }

  setBuffer(offset: number, buffer: Buffer): void {
    this.#offset = offset;
    this.#buffer = buffer;
  }

  byte(): number {
    const byte = this.#buffer[this.#offset++];
    if (byte === undefined) throw new BrokenMessage();
    return byte;
  }

  int16(): number {
    return ((this.byte() << 24) >> 16) | this.byte();
  }

  int32(): number {
    return (this.byte() << 24) | (this.byte() << 16) | (this.byte() << 8) | this.byte();
  }

  uint32(): number {
    return this.int32() >>> 0;
  }

  bytes(length: number): Buffer {
    const start = this.#skip(length);
    return this.#buffer.subarray(start, this.#offset);
  }

  /** A text of so many bytes. */
  string(length: number): string {
    const start = this.#skip(length);
    return this.#slice(start, this.#offset);
  }

  /** A text up to the next zero. */
  cstring(): string {
    const start = this.#offset;
    const end = this.#buffer.indexOf(0, start);
    if (end < 0) throw new BrokenMessage();
    this.#offset = end + 1;
    return this.#slice(start, end);
  }

  /** @returns where what is skipped begins */
  #skip(length: number): number {
    const start = this.#offset;
    if (length < 0 || start + length > this.#buffer.length) throw new BrokenMessage();
    this.#offset = start + length;
    return start;
  }

  #slice(start: number, end: number): string {
    if (end > this.#textEnd) {
      if (end - start > WINDOW) return this.#buffer.toString('utf8', start, end);
      this.#decodeFrom(start);
    }
    const from = start - this.#textStart;
    const to = end - this.#textStart;
    if (this.#nextWide < from) this.#nextWide = nextWideAfter(this.#text, from);
    return to <= this.#nextWide ? this.#text.slice(from, to) : this.#buffer.toString('utf8', start, end);
  }

  #decodeFrom(start: number): void {
    const window = this.#buffer.subarray(start, start + WINDOW);
    this.#text = window.toString('latin1');
    this.#textStart = start;
    this.#textEnd = start + window.length;
    this.#nextWide = isAscii(window) ? Infinity : nextWideAfter(this.#text, 0);
  }
}

/** What the server sends cannot be read. */
class BrokenMessage extends Error {
  override readonly name = 'BrokenMessage';
  override readonly message = 'Connection terminated: a message of the database ends too early';
}

/** @returns the place of the first character from here on that is not ASCII; Infinity where there is none */
function nextWideAfter(text: string, from: number): number {
  NOT_ASCII.lastIndex = from;
  return NOT_ASCII.test(text) ? NOT_ASCII.lastIndex - 1 : Infinity;
}
