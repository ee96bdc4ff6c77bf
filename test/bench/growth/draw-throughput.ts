import type { Mark, Spec } from 'vega';
import { count } from '../measure.js';
import { CASE_NAMES, CASES, type CaseName } from '../speed/cases.js';
import { COLOURS, FAINT_INK, FONT_SIZE, heading, TITLE_HEIGHT, toSvg, WIDTH } from './look.js';
import type { GrowthResults } from './results.js';
import type { Throughput } from './throughput.js';

const SIDE = 24;
const BOTTOM = 44;
const MOST_COLUMNS = 3;
const GAP = 32;
const PANEL_HEIGHT = 190;
/** Room for the name of a panel, and for the axis of the one above. */
const PANEL_TOP = 30;
const AXIS_HEIGHT = 44;

/** Above the highest bar, for its number: as a factor. */
const RATE_MARGIN = 1.12;

/** @returns the chart, as SVG, of requests a second against the number of processes, a panel for each kind of request */
export async function drawThroughput({ machine, cores, throughput }: GrowthResults): Promise<string> {
  const { titles, connections, load, rounds, seconds, byWorkers } = throughput;
  const cases = CASE_NAMES.filter((name) => byWorkers.every(({ requestsPerSecond }) => name in requestsPerSecond));
  const columns = Math.min(MOST_COLUMNS, cases.length);
  const rows = Math.ceil(cases.length / columns);
  const width = WIDTH - 2 * SIDE;
  const panelWidth = (width - (columns - 1) * GAP) / columns;
  const panels = cases.map((name, place): Mark => {
    const x = (place % columns) * (panelWidth + GAP);
    const y = Math.floor(place / columns) * (PANEL_HEIGHT + PANEL_TOP + AXIS_HEIGHT) + PANEL_TOP;
    const most = Math.max(...byWorkers.map(({ requestsPerSecond }) => requestsPerSecond[name] ?? NaN));
    return panel(name, most * RATE_MARGIN, { x, y, width: panelWidth });
  });
  const spec: Spec = {
    width,
    height: rows * (PANEL_HEIGHT + PANEL_TOP) + (rows - 1) * AXIS_HEIGHT,
    autosize: 'none',
    padding: { left: SIDE, right: SIDE, top: TITLE_HEIGHT, bottom: BOTTOM },
    title: heading('Requests a second, by WORKERS', [
      `${cores} cores, which the load (${load}, ${connections} connections), PostgreSQL and Redis share with the workers.`,
      `${count(titles)} titles; median of ${rounds} × ${seconds} s; each panel has its own scale.`,
      machine,
    ]),
    data: cases.map((name) => ({ name, values: barsOf(name, byWorkers) })),
    marks: panels,
  };
  return toSvg(spec);
}

function barsOf(name: CaseName, byWorkers: readonly Throughput[]): { workers: number; rate: number; text: string }[] {
  return byWorkers.map(({ workers, requestsPerSecond }) => {
    const rate = requestsPerSecond[name] ?? NaN;
    return { workers, rate, text: count(rate) };
  });
}

/** @param most - the end of its scale. @param place - in pixels, without its name and its axis */
function panel(name: CaseName, most: number, place: { x: number; y: number; width: number }): Mark {
  const { x, y, width } = place;
  return {
    type: 'group',
    encode: {
      enter: { x: { value: x }, y: { value: y }, width: { value: width }, height: { value: PANEL_HEIGHT } },
    },
    scales: [
      {
        name: 'workers',
        type: 'band',
        domain: { data: name, field: 'workers' },
        range: [0, width],
        paddingInner: 0.3,
        paddingOuter: 0.15,
      },
      { name: 'rate', domain: [0, most], range: [PANEL_HEIGHT, 0] },
    ],
    axes: [{ scale: 'workers', orient: 'bottom', ticks: false, title: 'WORKERS', titlePadding: 6, labelPadding: 6 }],
    marks: [
      {
        type: 'text',
        encode: {
          enter: {
            y: { value: -12 },
            text: { value: CASES[name] },
            fill: { value: COLOURS[name] },
            fontSize: { value: FONT_SIZE + 1 },
            fontWeight: { value: 'bold' },
          },
        },
      },
      {
        type: 'rect',
        from: { data: name },
        encode: {
          enter: {
            x: { scale: 'workers', field: 'workers' },
            width: { scale: 'workers', band: 1 },
            y: { scale: 'rate', field: 'rate' },
            y2: { scale: 'rate', value: 0 },
            fill: { value: COLOURS[name] },
          },
        },
      },
      {
        type: 'text',
        from: { data: name },
        encode: {
          enter: {
            x: { scale: 'workers', field: 'workers', band: 0.5 },
            y: { scale: 'rate', field: 'rate', offset: -5 },
            align: { value: 'center' },
            text: { field: 'text' },
            fill: { value: FAINT_INK },
            fontSize: { value: FONT_SIZE },
          },
        },
      },
    ],
  };
}
