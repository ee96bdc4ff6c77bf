import type { Writable } from 'node:stream';
import { SingleBar } from 'cli-progress';
import type { ImportProgress } from '../../catalog/import/index.js';

export interface ProgressDisplayOptions {
  /** What the rows are. */
  readonly label: string;
  /** Bytes to read; undefined when unknown. */
  readonly size?: number | undefined;
  /** Whether to draw a bar. */
  readonly isEnabled: boolean;
}

/** Shows the progress of an import: a bar on a terminal, otherwise nothing. */
export class ProgressDisplay {
  readonly #stderr: Writable;
  readonly #options: ProgressDisplayOptions;
  #bar: SingleBar | undefined;
  #phase: ImportProgress['phase'] | undefined;

  constructor(stderr: Writable & { readonly isTTY?: boolean }, options: ProgressDisplayOptions) {
    this.#stderr = stderr;
    this.#options = { ...options, isEnabled: options.isEnabled && stderr.isTTY === true };
  }

  /** Writes a line, above the bar if there is one. */
  printLine(line: string): void {
    // The bar is drawn again below the line at the next update.
    this.#stderr.write(`${this.#bar ? '\r\x1b[K' : ''}${line}\n`);
  }

  update({ phase, rows, bytes, total }: ImportProgress): void {
    if (!this.#options.isEnabled) return;
    const text = { count: rows.toLocaleString('en-US') };
    if (phase !== this.#phase) {
      this.stop();
      this.#phase = phase;
      const end = total ?? (phase === 'reading' ? this.#options.size : undefined);
      this.#bar = createBar(this.#stderr, `${this.#options.label}: ${phase}`, end !== undefined);
      this.#bar.start(end ?? 0, 0, text);
    }
    this.#bar?.update(phase === 'reading' ? bytes : rows, text);
  }

  /** Removes the bar. */
  stop(): void {
    this.#bar?.stop();
    this.#bar = undefined;
  }
}

function createBar(stream: Writable, label: string, hasEnd: boolean): SingleBar {
  return new SingleBar({
    format: `${label} ${hasEnd ? '{bar} {percentage}% | ' : ''}{count} rows | {duration_formatted}`,
    stream,
    barsize: 30,
    hideCursor: true,
    clearOnComplete: true,
    // The command handles signals itself and stops the bar.
    gracefulExit: false,
  });
}
