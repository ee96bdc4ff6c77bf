import { isAscii } from 'node:buffer';
import type { Readable } from 'node:stream';
import type pg from 'pg';
import { Parser } from 'pg-protocol/dist/parser.js';

type OnMessage = Parameters<Parser['parse']>[1];

const EMPTY = Buffer.alloc(0);

const NOT_ASCII = /[^\0-\x7f]/g;

/**
 * Makes a connection read what the server sends through an {@link AnswerParser} instead of the driver's own parser. To be
 * called before it connects.
 */
export function readFast(connection: pg.Connection): void {
  const attachListeners = (stream: Readable): void => {
    const parser = new AnswerParser();
    stream.on('data', (chunk: Buffer) => {
      parser.parse(chunk, (message) => {
        connection.emit(message.name === 'error' ? 'errorMessage' : message.name, message);
      });
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
 * Reads the fields of messages, in place of the driver's BufferReader. All that has arrived together is decoded at once, and
 * a field is cut out of that text where it is ASCII; where it is not, it is decoded on its own.
 *
 * A text that was cut out keeps the whole in memory for as long as it is kept itself: some 64 KiB at most.
 */
class FieldReader {
  #buffer: Buffer = EMPTY;
  #offset = 0;
  /** What has arrived, a character for each byte, and where in the buffer it begins. */
  #text: string | undefined;
  #textStart = 0;
  /** Where the next byte that is not ASCII is in the text, as seen from the last field. */
  #nextWide = -1;

  /** Forgets what was decoded. To be called whenever the buffer may have changed. */
  forget(): void {
    this.#text = undefined;
  }

  setBuffer(offset: number, buffer: Buffer): void {
    this.#offset = offset;
    this.#buffer = buffer;
  }

  byte(): number {
    return this.#buffer[this.#offset++] ?? 0;
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
    return this.#buffer.subarray(this.#offset, (this.#offset += length));
  }

  /** A text of so many bytes. */
  string(length: number): string {
    return this.#slice(this.#offset, (this.#offset += length));
  }

  /** A text up to the next zero. */
  cstring(): string {
    const start = this.#offset;
    const end = this.#buffer.indexOf(0, start);
    this.#offset = end + 1;
    return this.#slice(start, end);
  }

  #slice(start: number, end: number): string {
    const text = (this.#text ??= this.#decode(start));
    const from = start - this.#textStart;
    const to = end - this.#textStart;
    if (this.#nextWide < from) this.#nextWide = nextWideAfter(text, from);
    return to <= this.#nextWide ? text.slice(from, to) : this.#buffer.toString('utf8', start, end);
  }

  #decode(start: number): string {
    const rest = this.#buffer.subarray(start);
    this.#textStart = start;
    this.#nextWide = isAscii(rest) ? Infinity : -1;
    return rest.toString('latin1');
  }
}

/** @returns the place of the first character from here on that is not ASCII; Infinity where there is none */
function nextWideAfter(text: string, from: number): number {
  NOT_ASCII.lastIndex = from;
  return NOT_ASCII.test(text) ? NOT_ASCII.lastIndex - 1 : Infinity;
}
