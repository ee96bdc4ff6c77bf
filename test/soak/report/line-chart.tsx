/** @jsxRuntime automatic @jsxImportSource preact */
import type { VNode } from 'preact';
import { scaleLines } from '../../../src/site/settings/usage/chart.js';
import type { FaultRecord } from '../history.js';
import type { Line } from './figures.js';

const WIDTH = 900;
const PLOT = { left: 56, right: 12, top: 10, height: 150, bottom: 26 };
const MOST_GRID_LINES = 5;

/** Distances between the marks below the axis, in seconds. */
const STEPS = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600];
const MOST_MARKS = 12;

interface LineChartProps {
  readonly title: string;
  readonly lines: readonly Line[];
  /** In milliseconds. */
  readonly begin: number;
  readonly end: number;
  readonly faults: readonly FaultRecord[];
}

/** Lines over time, with a band for each fault. */
export function LineChart({ title, lines, begin, end, faults }: LineChartProps): VNode {
  const seconds = (end - begin) / 1000;
  const highest = Math.max(1, ...lines.flatMap(({ points }) => points.map(([, value]) => value)));
  const grid = scaleLines(highest, MOST_GRID_LINES);
  const x = (second: number): string =>
    (PLOT.left + (Math.min(seconds, Math.max(0, second)) / seconds) * (WIDTH - PLOT.left - PLOT.right)).toFixed(1);
  const y = (value: number): string => (PLOT.top + PLOT.height * (1 - value / (grid.at(-1) ?? 1))).toFixed(1);
  const step = STEPS.find((one) => seconds / one <= MOST_MARKS) ?? 3_600;
  const marks = Array.from({ length: Math.floor(seconds / step) + 1 }, (_, index) => index * step);
  const bottom = PLOT.top + PLOT.height;
  return (
    <figure class="soak-chart">
      <figcaption>
        <strong>{title}</strong>
        {lines.map(({ name }, index) => (
          <span key={name} class={`soak-key soak-line-${index % COLOURS}`}>
            {name}
          </span>
        ))}
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${bottom + PLOT.bottom}`} role="img" aria-label={title}>
        {faults.map((fault, index) => (
          <g key={fault.start}>
            <title>{fault.name}</title>
            <rect
              class="soak-fault"
              x={x((fault.start - begin) / 1000)}
              width={Math.max(2, Number(x((fault.end - begin) / 1000)) - Number(x((fault.start - begin) / 1000)))}
              y={PLOT.top}
              height={PLOT.height}
            />
            <text class="chart-label" x={x((fault.start - begin) / 1000)} y={PLOT.top + 9}>
              {index + 1}
            </text>
          </g>
        ))}
        {grid.map((value) => (
          <g key={value}>
            <line
              class={value === 0 ? 'chart-axis' : 'chart-grid'}
              x1={PLOT.left}
              x2={WIDTH - PLOT.right}
              y1={y(value)}
              y2={y(value)}
            />
            <text class="chart-label" x={PLOT.left - 8} y={Number(y(value)) + 4} text-anchor="end">
              {value.toLocaleString('en-US', { notation: 'compact' })}
            </text>
          </g>
        ))}
        {marks.map((second) => (
          <text key={second} class="chart-label" x={x(second)} y={bottom + 18} text-anchor="middle">
            {step >= 60 ? `${second / 60} min` : `${second} s`}
          </text>
        ))}
        {lines.map(({ name, points }, index) => (
          <polyline
            key={name}
            class={`soak-line soak-line-${index % COLOURS}`}
            points={points.map(([second, value]) => `${x(second)},${y(value)}`).join(' ')}
          />
        ))}
      </svg>
    </figure>
  );
}

/** Lines of a chart that have a colour of their own. */
const COLOURS = 6;
