import { GuidePicture } from '../picture/guide-picture.js';
import type { Colour } from '../picture/draw-lines.js';
import { CASE_NAMES, CASES, type CaseName } from '../speed/cases.js';
import type { GrowthResults } from './growth.js';

const COLOURS: Readonly<Record<CaseName, Colour>> = {
  me: 'purple',
  stats: 'green',
  changes: 'blue',
  tail: 'orange',
  title: 'grey',
};

/** The time that a request takes against the size of the catalogue. */
export const TIMES = new GuidePicture<GrowthResults>({
  path: 'pictures/times.svg',
  guide: 'performance',
  figures: new URL('growth.json', import.meta.url),
  chartOf: ({ machine, seconds, bySize }) => ({
    title: 'Median time of a request, by the size of the catalogue',
    subtitle: [
      `One request after the other over HTTP, without Redis; the sizes by turns, for ${seconds} s together.`,
      machine,
    ],
    unit: 'milliseconds',
    isLogarithmic: false,
    sizes: bySize.map(({ titles }) => titles),
    lines: CASE_NAMES.map((name) => ({
      name: CASES[name],
      colour: COLOURS[name],
      times: bySize.map(({ medianMs }) => medianMs[name]),
    })),
  }),
});
