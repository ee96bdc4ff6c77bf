import type { Writable } from 'node:stream';
import { SingleBar } from 'cli-progress';
import type { ImportProgress } from '../../catalog/import/index.js';

export interface ImportDisplayOptions {
  readonly label: string;
  /** Bytes to read; undefined when that is unknown. */
  readonly size: number | undefined;
  /** Whether a bar may be drawn, if there is a terminal. */
  readonly canDraw: boolean;
}

/** How often a long import reports its progress without a terminal. */
const LINE_INTERVAL_MS = 5_000;

/** How often the bar is drawn. */
const DRAWS_A_SECOND = 10;

/** Shows the progress of an import: as a bar on a terminal, otherwise as a line now and then. */
export class ProgressDisplay {
  readonly #stderr: Writable;
  readonly #options: ImportDisplayOptions;
  readonly #canDraw: boolean;
  #bar: SingleBar | undefined;
  #phase: ImportProgress['phase'] | undefined;
  #phaseStart = 0;
  #rowsAtStart = 0;
  #lastLine = Date.now();

  constructor(stderr: Writable & { readonly isTTY?: boolean }, options: ImportDisplayOptions) {
    this.#stderr = stderr;
    this.#options = options;
    this.#canDraw = options.canDraw && stderr.isTTY === true;
  }

  /** Writes a line, above the bar if there is one. */
  printLine(line: string): void {
    // The next progress draws the bar again below the line.
    this.#stderr.write(`${this.#bar ? '\r\x1b[K' : ''}${line}\n`);
  }

  /** Shows progress, at a rate that people can read. */
  update(progress: ImportProgress): void {
    if (progress.phase !== this.#phase) this.#begin(progress);
    if (this.#bar) {
      this.#bar.update(progress.phase === 'reading' ? progress.bytes : progress.rows, this.#payload(progress));
    } else if (Date.now() - this.#lastLine >= LINE_INTERVAL_MS) {
      this.#lastLine = Date.now();
      const { rows, rate } = this.#payload(progress);
      const total = progress.total === undefined ? '' : ` of ${progress.total.toLocaleString('en-US')}`;
      const done = progress.phase === 'reading' ? 'read' : 'written';
      this.printLine(`${this.#options.label}: ${rows}${total} rows ${done}, ${rate} rows/s`);
    }
  }

  /** Removes the bar. */
  stop(): void {
    this.#bar?.stop();
    this.#bar = undefined;
  }

  #begin(progress: ImportProgress): void {
    this.stop();
    this.#phase = progress.phase;
    this.#phaseStart = Date.now();
    this.#rowsAtStart = progress.rows;
    if (!this.#canDraw) return;
    const total = progress.phase === 'reading' ? this.#options.size : progress.total;
    const bar = total === undefined ? '' : '{bar} {percentage}% | ';
    this.#bar = new SingleBar({
      format: `${this.#options.label}: ${progress.phase} ${bar}{rows} rows | {rate} rows/s`,
      stream: this.#stderr,
      fps: DRAWS_A_SECOND,
      barsize: 30,
      hideCursor: true,
      clearOnComplete: true,
      // The command handles signals itself, and stops the bar.
      gracefulExit: false,
    });
    this.#bar.start(total ?? 0, 0, this.#payload(progress));
  }

  #payload({ rows }: ImportProgress): { rows: string; rate: string } {
    const seconds = (Date.now() - this.#phaseStart) / 1000;
    const rate = seconds > 0 ? Math.round((rows - this.#rowsAtStart) / seconds) : 0;
    return { rows: rows.toLocaleString('en-US'), rate: rate.toLocaleString('en-US') };
  }
}
