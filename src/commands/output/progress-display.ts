import type { Writable } from 'node:stream';
import type { Progress } from '../../platform/process/progress.js';
import { formatCount } from '../../platform/text/count.js';
import { printable } from '../../platform/text/plain-text.js';

export interface ProgressDisplayOptions {
  /** The kind of the rows. */
  readonly label: string;
  /** Bytes to read; undefined when unknown. */
  readonly size?: number | undefined;
  readonly isEnabled: boolean;
}

/** Returns to the start of the line and erases it. */
const ERASE = '\r\u001b[K';

/** Shows progress as one line on a terminal, which is written anew each time; elsewhere nothing. */
export class ProgressDisplay {
  readonly #stderr: Writable;
  readonly #options: ProgressDisplayOptions;
  #shown = '';

  constructor(stderr: Writable & { readonly isTTY?: boolean }, options: ProgressDisplayOptions) {
    this.#stderr = stderr;
    this.#options = { ...options, isEnabled: options.isEnabled && stderr.isTTY === true };
  }

  /** Writes a line, above the progress if it is shown. Whatever part of it is foreign stays on that line. */
  printLine(line: string): void {
    const progress = this.#shown;
    this.#show('');
    this.#stderr.write(`${printable(line)}\n`);
    this.#show(progress);
  }

  update({ phase, rows, bytes, total }: Progress): void {
    const { label, size, isEnabled } = this.#options;
    if (!isEnabled) return;
    const isReading = phase === 'reading';
    const end = total ?? (isReading ? size : undefined);
    const share = end ? `${Math.floor((100 * (isReading ? bytes : rows)) / end)} %, ` : '';
    this.#show(`${label}: ${phase}: ${share}${formatCount(rows)} rows`);
  }

  /** Removes the progress. */
  stop(): void {
    this.#show('');
  }

  #show(text: string): void {
    if (this.#shown !== text) this.#stderr.write(ERASE + text);
    this.#shown = text;
  }
}
