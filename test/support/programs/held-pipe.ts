import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '../temporary-folder.js';

/** What a pipe of Linux holds, in bytes. */
export const PIPE_BYTES = 65_536;

/** What it takes at a time, in bytes. */
const PAGE_BYTES = 4_096;

/** A pipe whose reader is controlled by the test. */
export class HeldPipe {
  readonly #chunk = Buffer.alloc(PIPE_BYTES);
  #text = '';
  #isLeft = false;

  /** @param writer - the file descriptor that a program gets */
  private constructor(
    private readonly reader: number,
    readonly writer: number,
  ) {}

  static async open(): Promise<HeldPipe> {
    const path = join(await temporaryFolder(), 'pipe');
    execFileSync('mkfifo', [path]);
    const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    return new HeldPipe(reader, openSync(path, constants.O_WRONLY | constants.O_NONBLOCK));
  }

  /** Fills it, so that whatever a program writes waits for the reader. */
  fill(): void {
    try {
      for (;;) writeSync(this.writer, this.#chunk, 0, PAGE_BYTES);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    }
  }

  /** The writer is the program alone from now on. */
  handOver(): void {
    closeSync(this.writer);
  }

  /** Reads what is there now, unless the reader has left. @returns all that was read so far */
  read(): string {
    try {
      for (let length = this.#isLeft ? 0 : 1; length > 0;) {
        length = readSync(this.reader, this.#chunk);
        this.#text += this.#chunk.toString('utf8', 0, length);
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    }
    return this.#text;
  }

  leave(): void {
    this.#isLeft = true;
    closeSync(this.reader);
  }
}
