import { parse, View, type Config, type Spec } from 'vega';
import { CASE_NAMES, CASES, type CaseName } from '../speed/cases.js';
import type { GrowthResults } from './growth.js';

const WIDTH = 800;
const HEIGHT = 300;
const PADDING = { left: 64, right: 262, top: 106, bottom: 52 };
const PLOT_WIDTH = WIDTH - PADDING.left - PADDING.right;
const FONT_SIZE = 13;
const INK = '#1f2328';
const FAINT_INK = '#59636e';
const GRID = '#d8dee4';
const BACKGROUND = '#ffffff';

/** How far the axes reach beyond the values, as a factor. */
const SIZE_MARGIN = 1.25;
const TIME_MARGIN = 1.1;

/** Distinguishable with colour blindness, and dark enough for text on the background. */
const COLOURS: Readonly<Record<CaseName, string>> = {
  me: '#8a3b8f',
  stats: '#11734b',
  changes: '#0b62a4',
  tail: '#b3450e',
  title: '#5a5a5a',
};

/** What stands for each colour on a dark screen. */
const DARK: Readonly<Record<string, string>> = {
  [INK]: '#e6e9f0',
  [FAINT_INK]: '#a1a9b8',
  [GRID]: '#2a303d',
  [BACKGROUND]: '#161a23',
  [COLOURS.me]: '#dd9fe2',
  [COLOURS.stats]: '#6fcf9f',
  [COLOURS.changes]: '#82bcf7',
  [COLOURS.tail]: '#f5a06c',
  [COLOURS.title]: '#b8b8b8',
};

/** An image has no styles but its own, and follows the colour scheme of the page that shows it. */
const STYLE = `<style>@media screen and (prefers-color-scheme: dark) {${Object.entries(DARK)
  .map(([light, dark]) => `[fill="${light}"]{fill:${dark}}[stroke="${light}"]{stroke:${dark}}`)
  .join('')}}</style>`;

/** The picture has a background of its own, because other pages show it too. The font is sans-serif, Vega's default. */
const LOOK: Config = {
  background: BACKGROUND,
  title: { color: INK, subtitleColor: FAINT_INK, fontSize: 17, subtitleFontSize: FONT_SIZE, subtitleLineHeight: 18 },
  axis: {
    labelColor: INK,
    labelFontSize: FONT_SIZE,
    titleColor: FAINT_INK,
    titleFontSize: FONT_SIZE,
    titleFontWeight: 'normal',
    domainColor: FAINT_INK,
    tickColor: FAINT_INK,
    gridColor: GRID,
  },
  legend: { labelColor: INK, labelFontSize: FONT_SIZE, rowPadding: 6 },
};

/** Coordinates are rounded: further digits are invisible, and may differ between processors. */
const LONG_NUMBER = /\d+\.\d{3,}/g;

/**
 * Draws the time that a request takes against the size of the catalogue.
 *
 * @returns SVG, a line for each element. The same results always give the same text
 */
export async function drawTimes({ machine, seconds, bySize }: GrowthResults): Promise<string> {
  const sizes = bySize.map(({ titles }) => titles);
  const most = Math.max(...bySize.flatMap(({ medianMs }) => Object.values(medianMs)));
  const label = (name: CaseName): string => `${bySize.at(-1)?.medianMs[name].toFixed(2) ?? ''} ms ${CASES[name]}`;
  // The legend lists the lines from top to bottom.
  const names = CASE_NAMES.toSorted((a, b) => (bySize.at(-1)?.medianMs[b] ?? 0) - (bySize.at(-1)?.medianMs[a] ?? 0));
  const position = { x: { scale: 'x', field: 'titles' }, y: { scale: 'y', field: 'ms' } };
  const colour = { scale: 'colour', field: 'line' };
  const spec: Spec = {
    $schema: 'https://vega.github.io/schema/vega/v6.json',
    width: PLOT_WIDTH,
    height: HEIGHT,
    autosize: 'none',
    padding: PADDING,
    title: {
      text: 'Median time of a request, by the size of the catalogue',
      subtitle: [
        `One request after the other over HTTP, without Redis; the sizes by turns, for ${seconds} s together.`,
        machine,
      ],
      anchor: 'start',
      frame: 'bounds',
      // Without a browser, Vega cannot measure text and would guess its height.
      offset: 16,
    },
    data: [
      {
        name: 'times',
        values: names.flatMap((name) =>
          bySize.map(({ titles, medianMs }) => ({ line: label(name), titles, ms: medianMs[name] })),
        ),
      },
    ],
    scales: [
      {
        name: 'x',
        type: 'log',
        domain: [Math.min(...sizes) / SIZE_MARGIN, Math.max(...sizes) * SIZE_MARGIN],
        range: 'width',
      },
      { name: 'y', domain: [0, most * TIME_MARGIN], range: 'height' },
      {
        name: 'colour',
        type: 'ordinal',
        domain: names.map(label),
        range: names.map((name) => COLOURS[name]),
      },
    ],
    axes: [
      { scale: 'x', orient: 'bottom', values: sizes, format: ',', title: 'titles in the catalogue', titlePadding: 10 },
      { scale: 'y', orient: 'left', grid: true, tickCount: 6, domain: false, ticks: false, title: 'milliseconds' },
    ],
    legends: [{ stroke: 'colour', symbolType: 'stroke', orient: 'right', offset: 12, labelLimit: 0 }],
    marks: [
      {
        type: 'group',
        from: { facet: { name: 'one', data: 'times', groupby: 'line' } },
        marks: [
          {
            type: 'line',
            from: { data: 'one' },
            encode: { enter: { ...position, stroke: colour, strokeWidth: { value: 2 } } },
          },
          {
            type: 'symbol',
            from: { data: 'one' },
            encode: { enter: { ...position, fill: colour, size: { value: 40 } } },
          },
        ],
      },
    ],
  };
  const view = new View(parse(spec, LOOK), { renderer: 'none' });
  try {
    const svg = (await view.toSVG()).replace(LONG_NUMBER, (number) => String(Number(Number(number).toFixed(2))));
    return `${svg.replace('>', `>${STYLE}`).replaceAll('><', '>\n<')}\n`;
  } finally {
    view.finalize();
  }
}
