import { parse, View, type Config, type Spec, type Title } from 'vega';
import type { CaseName } from '../speed/cases.js';

/** Of the whole picture, in pixels: what a page shows without shrinking it. */
export const WIDTH = 800;

/** Room for a title and three lines above what is drawn, and some between them. */
export const TITLE_HEIGHT = 106;
const TITLE_DISTANCE = 16;

export const FONT_SIZE = 13;

const INK = '#1f2328';
export const FAINT_INK = '#59636e';

/** The same in all charts; told apart with any eyesight, and dark enough for text on the background. */
export const COLOURS: Readonly<Record<CaseName, string>> = {
  me: '#8a3b8f',
  stats: '#11734b',
  changes: '#0b62a4',
  tail: '#b3450e',
  title: '#5a5a5a',
  unchanged: '#8a6100',
  invalid: '#a3123f',
  exhausted: '#0e7490',
};

/** With a background of its own it is the same in a light and in a dark page. The font is sans-serif, Vega's default. */
const LOOK: Config = {
  background: 'white',
  title: {
    color: INK,
    subtitleColor: FAINT_INK,
    fontSize: 17,
    subtitleFontSize: FONT_SIZE,
    subtitleLineHeight: 18,
    subtitlePadding: 6,
  },
  axis: {
    labelColor: INK,
    labelFontSize: FONT_SIZE,
    titleColor: FAINT_INK,
    titleFontSize: FONT_SIZE,
    titleFontWeight: 'normal',
    domainColor: FAINT_INK,
    tickColor: FAINT_INK,
    gridColor: '#d8dee4',
  },
};

/** What stands above a chart: what it shows, and how it came about. */
export function heading(text: string, subtitle: readonly string[]): Title {
  // Placed by hand: without a browser no text can be measured, and the room for it would be guessed.
  return { text, subtitle: [...subtitle], anchor: 'start', frame: 'bounds', offset: TITLE_DISTANCE };
}

/** Digits of a coordinate behind the point: further ones show nowhere, and may differ from one processor to another. */
const DIGITS = 2;
const LONG_NUMBER = new RegExp(`\\d+\\.\\d{${DIGITS + 1},}`, 'g');

/** Draws it. @returns the text of a file, with a line for each element so that differences can be read */
export async function toSvg(spec: Spec): Promise<string> {
  const view = new View(parse({ $schema: 'https://vega.github.io/schema/vega/v6.json', ...spec }, LOOK), {
    renderer: 'none',
  });
  try {
    const svg = (await view.toSVG()).replace(LONG_NUMBER, (number) => String(Number(Number(number).toFixed(DIGITS))));
    return `${svg.replaceAll('><', '>\n<')}\n`;
  } finally {
    view.finalize();
  }
}
