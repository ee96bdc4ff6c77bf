import { readFile, writeFile } from 'node:fs/promises';
import { drawLines, type Chart } from './draw-lines.js';

export interface GuidePictureOptions<Figures> {
  /** The path of its file in the folder of the guides. */
  readonly path: string;
  /** The name of the guide that shows it. */
  readonly guide: string;
  /** The file of the figures that were saved last. */
  readonly figures: URL;
  readonly chartOf: (figures: Figures) => Chart;
}

/** A picture in a guide, with the figures that it is drawn from. */
export class GuidePicture<Figures> {
  readonly file: URL;

  constructor(readonly options: GuidePictureOptions<Figures>) {
    this.file = new URL(`../../../src/site/guides/${options.path}`, import.meta.url);
  }

  /** Keeps figures and draws the picture from them. */
  async save(figures: Figures): Promise<void> {
    await writeFile(this.options.figures, `${JSON.stringify(figures, toMicros, 2)}\n`);
    await this.draw();
  }

  /** Draws the picture from the figures that were saved last. */
  async draw(): Promise<void> {
    await writeFile(this.file, await drawLines(await this.readChart()));
  }

  /** @returns the chart of the figures that were saved last */
  async readChart(): Promise<Chart> {
    return this.options.chartOf(JSON.parse(await readFile(this.options.figures, 'utf8')) as Figures);
  }
}

/** Rounds numbers to six decimals, finer than any measurement. */
function toMicros(_key: string, value: unknown): unknown {
  return typeof value === 'number' ? Math.round(value * 1e6) / 1e6 : value;
}
