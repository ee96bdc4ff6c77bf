import { drawThroughput } from './draw-throughput.js';
import { drawTimes } from './draw-times.js';
import type { GrowthResults } from './results.js';

/** A picture that is made of the results alone. */
interface Chart {
  readonly file: URL;
  /** @returns the text of the file, which is SVG: always the same for the same results */
  readonly draw: (results: GrowthResults) => Promise<string>;
}

/** The folder of the performance guide: an installation has it without the tests. */
const PICTURES = new URL('../../../src/site/guides/pictures/', import.meta.url);

/** The charts of the performance guide. */
export const CHARTS: readonly Chart[] = [
  { file: new URL('times.svg', PICTURES), draw: drawTimes },
  { file: new URL('throughput.svg', PICTURES), draw: drawThroughput },
];
