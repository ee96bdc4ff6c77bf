/** The part of Vega that is used: `make bench` alone installs it. */
interface Vega {
  readonly parse: (spec: object, look: object) => unknown;
  readonly View: new (parsed: unknown, options: object) => { toSVG(): Promise<string>; finalize(): void };
}

const PACKAGES = new URL('../../../.cache/bench/node_modules/', import.meta.url);

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

/**
 * Distinguishable with colour blindness, and dark enough for text on the background. The second of each replaces the
 * first on a dark screen.
 */
const COLOURS = {
  purple: ['#8a3b8f', '#dd9fe2'],
  green: ['#11734b', '#6fcf9f'],
  blue: ['#0b62a4', '#82bcf7'],
  orange: ['#b3450e', '#f5a06c'],
  grey: ['#5a5a5a', '#b8b8b8'],
} as const;

/** The name of a colour that lines may have. */
export type Colour = keyof typeof COLOURS;

/** Times in milliseconds against the number of titles, which has a logarithmic axis. */
export interface Chart {
  readonly title: string;
  readonly subtitle: readonly string[];
  readonly sizes: readonly number[];
  readonly lines: readonly Line[];
}

interface Line {
  readonly name: string;
  readonly colour: Colour;
  /** In milliseconds, one for each size. */
  readonly times: readonly number[];
}

/** What replaces each colour on a dark screen. */
const DARK: Readonly<Record<string, string>> = {
  [INK]: '#e6e9f0',
  [FAINT_INK]: '#a1a9b8',
  [GRID]: '#2a303d',
  [BACKGROUND]: '#161a23',
  ...Object.fromEntries(Object.values(COLOURS)),
};

/** An image has no styles but its own, and follows the colour scheme of the page that shows it. */
const STYLE = `<style>@media screen and (prefers-color-scheme: dark) {${Object.entries(DARK)
  .map(([light, dark]) => `[fill="${light}"]{fill:${dark}}[stroke="${light}"]{stroke:${dark}}`)
  .join('')}}</style>`;

/** The picture has a background of its own, because other pages show it too. The font is sans-serif, Vega's default. */
const LOOK = {
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
 * Draws a chart. Its legend has the name of each line with its time at the largest size.
 *
 * @returns SVG, a line for each element. The same chart always gives the same text
 */
export async function drawLines({ title, subtitle, sizes, lines }: Chart): Promise<string> {
  const most = Math.max(...lines.flatMap(({ times }) => times));
  // The legend lists the lines from top to bottom.
  const sorted = lines
    .map((line) => ({ ...line, label: labelOf(line) }))
    .toSorted((a, b) => (b.times.at(-1) ?? 0) - (a.times.at(-1) ?? 0));
  const position = { x: { scale: 'x', field: 'titles' }, y: { scale: 'y', field: 'time' } };
  const colour = { scale: 'colour', field: 'line' };
  const spec = {
    $schema: 'https://vega.github.io/schema/vega/v6.json',
    width: PLOT_WIDTH,
    height: HEIGHT,
    autosize: 'none',
    padding: PADDING,
    title: {
      text: title,
      subtitle: [...subtitle],
      anchor: 'start',
      frame: 'bounds',
      // Without a browser, Vega cannot measure text and would guess its height.
      offset: 16,
    },
    data: [
      {
        name: 'times',
        values: sorted.flatMap(({ label, times }) => times.map((time, i) => ({ line: label, titles: sizes[i], time }))),
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
        domain: sorted.map(({ label }) => label),
        range: sorted.map((line) => COLOURS[line.colour][0]),
      },
    ],
    axes: [
      {
        scale: 'x',
        orient: 'bottom',
        values: [...sizes],
        format: ',',
        title: 'titles in the catalogue',
        titlePadding: 10,
      },
      {
        scale: 'y',
        orient: 'left',
        grid: true,
        tickCount: 6,
        domain: false,
        ticks: false,
        title: 'milliseconds',
      },
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
  const { parse, View } = (await import(`${PACKAGES.href}vega/build/vega.module.js`)) as Vega;
  const view = new View(parse(spec, LOOK), { renderer: 'none' });
  try {
    const svg = (await view.toSVG()).replace(LONG_NUMBER, (number) => String(Number(Number(number).toFixed(2))));
    return `${svg.replace('>', `>${STYLE}`).replaceAll('><', '>\n<')}\n`;
  } finally {
    view.finalize();
  }
}

/** @returns the text of a line in the legend */
function labelOf({ name, times }: Line): string {
  return `${(times.at(-1) ?? NaN).toFixed(2)} ms ${name}`;
}
