import type { Writable } from 'node:stream';
import { OperatorError } from '../../errors.js';
import { syncFile } from '../../follower/lines.js';
import { createWholeFile } from './whole-file.js';

type Stdout = Writable & { readonly fd?: number };

/** Where an export goes. */
export interface Destination {
  /** Why a write failed. A failure of standard output also interrupts the program, which hides the reason. */
  readonly failure: Error | undefined;
  /** Writes all text, as fast as possible. @throws OperatorError when it cannot be written */
  write(text: AsyncIterable<Buffer>): Promise<void>;
  /** Writes the text to the disk, and gives the file its name. @throws OperatorError */
  commit(): Promise<void>;
  /** Removes what was not committed. */
  discard(): Promise<void>;
}

/**
 * Opens a file, or standard output for `-`.
 *
 * @param signal - when aborted, a write that waits for a reader fails at once
 */
export function openDestination(file: string, stdout: Stdout, signal: AbortSignal): Promise<Destination> {
  return file === '-' ? Promise.resolve(new StdoutDestination(stdout, signal)) : openFile(file);
}

async function openFile(file: string): Promise<Destination> {
  const whole = await createWholeFile(file);
  return {
    failure: undefined,
    write: async (text) => {
      for await (const piece of text) await whole.write(piece);
    },
    commit: () => whole.commit(),
    discard: () => whole.discard(),
  };
}

class StdoutDestination implements Destination {
  readonly #stdout: Stdout;
  readonly #signal: AbortSignal;
  failure: Error | undefined;

  constructor(stdout: Stdout, signal: AbortSignal) {
    this.#stdout = stdout;
    this.#signal = signal;
  }

  async write(text: AsyncIterable<Buffer>): Promise<void> {
    for await (const piece of text) await this.#writePiece(piece);
  }

  async commit(): Promise<void> {
    const { fd } = this.#stdout;
    try {
      if (fd !== undefined) await syncFile(fd);
    } catch (error) {
      throw this.#fail(error as Error);
    }
  }

  async discard(): Promise<void> {
    // Text that was written cannot be taken back.
  }

  /** Resolves when the bytes have left the process. */
  #writePiece(bytes: Buffer): Promise<void> {
    const signal = this.#signal;
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const abort = (): void => reject(signal.reason as Error);
      signal.addEventListener('abort', abort, { once: true });
      this.#stdout.write(bytes, (error) => {
        signal.removeEventListener('abort', abort);
        if (error) reject(this.#fail(error));
        else resolve();
      });
    });
  }

  #fail(error: Error): Error {
    const message = `Standard output cannot be written: ${error.message}. The written part is not a complete copy.`;
    this.failure = new OperatorError(message, { cause: error });
    return this.failure;
  }
}
