import type { Mark, Spec } from 'vega';
import { CASES } from '../speed/cases.js';
import type { Operation, ReadTimes } from '../reads.js';
import { COLOURS, FAINT_INK, FONT_SIZE, heading, TITLE_HEIGHT, toSvg, WIDTH } from './look.js';
import type { GrowthResults } from './results.js';

const LEFT = 48;
/** Room for the names of the lines. */
const RIGHT = 262;
const BOTTOM = 52;
const HEIGHT = 300;
const PLOT_WIDTH = WIDTH - LEFT - RIGHT;

/** Between the end of a line and its name. */
const NAME_DISTANCE = 26;
/** Between two names, at least. */
const NAME_HEIGHT = FONT_SIZE + 5;

/** How far the axes reach beyond the values, as a factor. */
const SIZE_MARGIN = 1.25;
const TIME_MARGIN = 1.1;

/** A line's end, and where its name stands: pixels from the top. */
interface Name {
  readonly text: string;
  readonly colour: string;
  readonly end: number;
  readonly at: number;
}

/** @returns the chart, as SVG, of the time that a request takes against the size of the catalogue */
export async function drawTimes({ machine, reads: { bySize, seconds } }: GrowthResults): Promise<string> {
  const sizes = bySize.map(({ titles }) => titles);
  const operations = Object.keys(bySize[0]?.medianMs ?? {}) as Operation[];
  const most = Math.max(...bySize.flatMap(({ medianMs }) => Object.values(medianMs))) * TIME_MARGIN;
  const spec: Spec = {
    width: PLOT_WIDTH,
    height: HEIGHT,
    autosize: 'none',
    padding: { left: LEFT, right: RIGHT, top: TITLE_HEIGHT, bottom: BOTTOM },
    title: heading('Median time of a request, by the size of the catalogue', [
      `One request after the other over HTTP, without Redis; the sizes by turns, for ${seconds} s together.`,
      machine,
    ]),
    data: [
      { name: 'times', values: operations.flatMap((operation) => pointsOf(operation, bySize)) },
      { name: 'names', values: namesOf(operations, bySize.at(-1), most) },
    ],
    scales: [
      {
        name: 'x',
        type: 'log',
        domain: [Math.min(...sizes) / SIZE_MARGIN, Math.max(...sizes) * SIZE_MARGIN],
        range: 'width',
      },
      { name: 'y', domain: [0, most], range: 'height' },
      { name: 'colour', type: 'ordinal', domain: operations, range: operations.map((operation) => COLOURS[operation]) },
    ],
    axes: [
      { scale: 'x', orient: 'bottom', values: sizes, format: ',', title: 'titles in the catalogue', titlePadding: 10 },
      { scale: 'y', orient: 'left', grid: true, tickCount: 6, domain: false, ticks: false },
    ],
    marks: [unit, lines, leaders(Math.max(...sizes)), names],
  };
  return toSvg(spec);
}

function pointsOf(
  operation: Operation,
  bySize: readonly ReadTimes[],
): { operation: Operation; titles: number; ms: number }[] {
  return bySize.map(({ titles, medianMs }) => ({ operation, titles, ms: medianMs[operation] }));
}

/** What the upright axis counts. */
const unit: Mark = {
  type: 'text',
  encode: {
    enter: {
      x: { value: -22 },
      y: { value: -6 },
      text: { value: 'milliseconds' },
      fill: { value: FAINT_INK },
      fontSize: { value: FONT_SIZE },
    },
  },
};

const position = { x: { scale: 'x', field: 'titles' }, y: { scale: 'y', field: 'ms' } };
const colour = { scale: 'colour', field: 'operation' };

/** A line with its points for each operation. */
const lines: Mark = {
  type: 'group',
  from: { facet: { name: 'line', data: 'times', groupby: 'operation' } },
  marks: [
    {
      type: 'line',
      from: { data: 'line' },
      encode: { enter: { ...position, stroke: colour, strokeWidth: { value: 2 } } },
    },
    { type: 'symbol', from: { data: 'line' }, encode: { enter: { ...position, fill: colour, size: { value: 40 } } } },
  ],
};

/** From the end of each line to its name. @param largest - where the lines end */
function leaders(largest: number): Mark {
  return {
    type: 'rule',
    from: { data: 'names' },
    encode: {
      enter: {
        x: { scale: 'x', value: largest, offset: 7 },
        x2: { value: PLOT_WIDTH + NAME_DISTANCE - 4 },
        y: { field: 'end' },
        y2: { field: 'at' },
        stroke: { field: 'colour' },
      },
    },
  };
}

const names: Mark = {
  type: 'text',
  from: { data: 'names' },
  encode: {
    enter: {
      x: { value: PLOT_WIDTH + NAME_DISTANCE },
      y: { field: 'at' },
      baseline: { value: 'middle' },
      fontSize: { value: FONT_SIZE },
      text: { field: 'text' },
      fill: { field: 'colour' },
    },
  },
};

/** Puts each name beside the end of its line, or as close to it as the names above leave room. */
function namesOf(operations: readonly Operation[], largest: ReadTimes | undefined, most: number): Name[] {
  const placed: Name[] = [];
  const ends = operations.map((operation) => {
    const ms = largest?.medianMs[operation] ?? NaN;
    const text = `${ms.toFixed(2)} ms ${CASES[operation]}`;
    return { text, colour: COLOURS[operation], end: HEIGHT * (1 - ms / most) };
  });
  ends.sort((a, b) => a.end - b.end);
  ends.forEach((name, place) => {
    const lowest = HEIGHT - (ends.length - 1 - place) * NAME_HEIGHT;
    const highest = (placed.at(-1)?.at ?? -Infinity) + NAME_HEIGHT;
    placed.push({ ...name, at: Math.max(highest, Math.min(lowest, name.end)) });
  });
  return placed;
}
