import { readFile, writeFile } from 'node:fs/promises';
import { CASE_NAMES, CASES, type CaseName } from '../speed/cases.js';
import { drawLines, type Chart, type Colour } from './draw-lines.js';
import type { GrowthResults } from './growth.js';

/** The picture of the performance guide: the time that a request takes against the size of the catalogue. */
export const PICTURE = new URL('../../../src/site/guides/pictures/times.svg', import.meta.url);

/** The figures that were saved last. */
const FIGURES = new URL('growth.json', import.meta.url);

const COLOURS: Readonly<Record<CaseName, Colour>> = {
  me: 'purple',
  stats: 'green',
  changes: 'blue',
  tail: 'orange',
  title: 'grey',
};

/** Keeps figures and draws the picture from them. */
export async function savePicture(figures: GrowthResults): Promise<void> {
  await writeFile(FIGURES, `${JSON.stringify(figures, toMicros, 2)}\n`);
  await drawPicture();
}

/** Draws the picture from the figures that were saved last. */
export async function drawPicture(): Promise<void> {
  await writeFile(PICTURE, await drawLines(await readChart()));
}

/** @returns the chart of the figures that were saved last */
export async function readChart(): Promise<Chart> {
  const { machine, seconds, bySize } = JSON.parse(await readFile(FIGURES, 'utf8')) as GrowthResults;
  return {
    title: 'Median time of a request, by the size of the catalogue',
    subtitle: [
      `One request after the other over HTTP, without Redis; the sizes by turns, for ${seconds} s together.`,
      machine,
    ],
    sizes: bySize.map(({ titles }) => titles),
    lines: CASE_NAMES.map((name) => ({
      name: CASES[name],
      colour: COLOURS[name],
      times: bySize.map(({ medianMs }) => medianMs[name]),
    })),
  };
}

/** Rounds numbers to six decimals, finer than any measurement. */
function toMicros(_key: string, value: unknown): unknown {
  return typeof value === 'number' ? Math.round(value * 1e6) / 1e6 : value;
}
