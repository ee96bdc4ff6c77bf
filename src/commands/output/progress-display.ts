import type { Writable } from 'node:stream';
import { SingleBar } from 'cli-progress';
import type { Progress } from '../../platform/process/progress.js';
import { formatCount } from '../../platform/text/count.js';

export interface ProgressDisplayOptions {
  /** What the rows are. */
  readonly label: string;
  /** Bytes to read; undefined when unknown. */
  readonly size?: number | undefined;
  /** Whether to draw a bar. */
  readonly isEnabled: boolean;
}

/** Shows progress: a bar on a terminal, otherwise nothing. */
export class ProgressDisplay {
  readonly #stderr: Writable;
  readonly #options: ProgressDisplayOptions;
  #bar: SingleBar | undefined;
  #last: Progress | undefined;
  #startedAt = 0;

  constructor(stderr: Writable & { readonly isTTY?: boolean }, options: ProgressDisplayOptions) {
    this.#stderr = stderr;
    this.#options = { ...options, isEnabled: options.isEnabled && stderr.isTTY === true };
  }

  /** Writes a line, above the bar if there is one. */
  printLine(line: string): void {
    const shown = this.#bar && this.#last;
    // The bar remembers where it began, and would return there.
    this.stop();
    this.#stderr.write(`${line}\n`);
    if (shown) this.update(shown);
  }

  update(progress: Progress): void {
    if (!this.#options.isEnabled) return;
    const { phase, rows, bytes, total } = progress;
    const isReading = phase === 'reading';
    const value = isReading ? bytes : rows;
    const text = { count: formatCount(rows) };
    if (phase !== this.#last?.phase) {
      this.stop();
      this.#startedAt = Date.now();
    }
    this.#last = progress;
    if (this.#bar) {
      this.#bar.update(value, text);
    } else {
      const end = total ?? (isReading ? this.#options.size : undefined);
      this.#bar = createBar(this.#stderr, `${this.#options.label}: ${phase}`, this.#startedAt, end !== undefined);
      this.#bar.start(end ?? 0, value, text);
    }
  }

  /** Removes the bar. */
  stop(): void {
    this.#bar?.stop();
    this.#bar = undefined;
  }
}

/** @param startedAt - milliseconds since 1970 */
function createBar(stream: Writable, label: string, startedAt: number, hasEnd: boolean): SingleBar {
  return new SingleBar({
    format: ({ barsize = 0, barCompleteString = '', barIncompleteString = '' }, { progress }, { count }) => {
      const complete = Math.round(progress * barsize);
      const bar = barCompleteString.slice(0, complete) + barIncompleteString.slice(0, barsize - complete);
      const share = hasEnd ? `${bar} ${Math.floor(progress * 100)}% | ` : '';
      return `${label} ${share}${String(count)} rows | ${Math.floor((Date.now() - startedAt) / 1000)}s`;
    },
    stream,
    barsize: 30,
    hideCursor: true,
    clearOnComplete: true,
    // The command handles signals itself and stops the bar.
    gracefulExit: false,
  });
}
