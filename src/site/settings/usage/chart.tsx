import type { VNode } from 'preact';
import type { DayTotal } from '../../../usage/daily-usage.js';
import type { UsageCounts } from '../../../usage/write-usage.js';
import { formatNumber } from '../../layout/values.js';

/** In units of the drawing. */
const WIDTH = 960;
const HEIGHT = 280;
const LEFT = 20;
/** The axis stands beside the newest days, so that a narrow screen shows both. */
const RIGHT = 56;
const TOP = 12;
const BOTTOM = 28;
const PLOT_WIDTH = WIDTH - LEFT - RIGHT;
const PLOT_HEIGHT = HEIGHT - TOP - BOTTOM;
const GAP = 4;

/** Lines of the grid above the axis. */
const GRID_LINES = 4;

/** Every fifth day has its date below the axis. */
const DAYS_PER_LABEL = 5;

/** The parts of a bar, from the axis up. */
const PARTS = [
  { name: 'served', label: 'Served', className: 'chart-bar' },
  { name: 'refused', label: 'Refused (over a limit)', className: 'chart-bar chart-bar-refused' },
  { name: 'failed', label: 'Failed', className: 'chart-bar chart-bar-failed' },
] as const;

/** Requests per day as bars, drawn with attributes alone: the content security policy forbids styles. */
export function UsageChart({ days }: { readonly days: readonly DayTotal[] }): VNode {
  const most = niceCeiling(Math.max(0, ...days.map(total)));
  const step = PLOT_WIDTH / Math.max(1, days.length);
  const y = (count: number): number => round(TOP + PLOT_HEIGHT * (1 - count / most));
  return (
    <figure class="usage-chart">
      <figcaption>
        <ul class="legend">
          {PARTS.map(({ name, label, className }) => (
            <li key={name}>
              <svg viewBox="0 0 12 12" width="12" height="12" aria-hidden="true" focusable="false">
                <rect class={className} width="12" height="12" rx="2" />
              </svg>
              {label}
            </li>
          ))}
        </ul>
      </figcaption>
      <div class="table-scroll" tabIndex={0} role="region" aria-label="Chart of the requests per day">
        <svg class="chart" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={summary(days)}>
          {Array.from({ length: GRID_LINES + 1 }, (_, line) => {
            const count = (most * line) / GRID_LINES;
            return (
              <g key={line}>
                <line
                  class={line === 0 ? 'chart-axis' : 'chart-grid'}
                  x1={LEFT}
                  x2={WIDTH - RIGHT}
                  y1={y(count)}
                  y2={y(count)}
                />
                <text class="chart-label" x={WIDTH - RIGHT + 8} y={y(count) + 4}>
                  {compact(count)}
                </text>
              </g>
            );
          })}
          {days.map((day, index) => (
            <g key={day.day}>
              <title>{`${day.day}: ${describe(day)}`}</title>
              {bars(day).map(({ className, from, count }) => (
                <rect
                  key={className}
                  class={className}
                  x={round(LEFT + index * step + GAP / 2)}
                  width={round(step - GAP)}
                  y={y(from + count)}
                  height={round(y(from) - y(from + count))}
                />
              ))}
              {index % DAYS_PER_LABEL === (days.length - 1) % DAYS_PER_LABEL && (
                <text class="chart-label" x={round(LEFT + (index + 0.5) * step)} y={HEIGHT - 8} text-anchor="middle">
                  {day.day.slice(5)}
                </text>
              )}
            </g>
          ))}
        </svg>
      </div>
    </figure>
  );
}

/** @returns the parts of a day's bar, each with the count below it */
function bars(day: DayTotal): { className: string; from: number; count: number }[] {
  let from = 0;
  return PARTS.map(({ name, className }) => {
    const bar = { className, from, count: day[name] };
    from += day[name];
    return bar;
  }).filter(({ count }) => count > 0);
}

/** @returns the least of 4, 8, 20, 40, 80, 200 … that is not less: its quarters are whole */
function niceCeiling(count: number): number {
  for (let power = 1; ; power *= 10) {
    for (const factor of [4, 8, 20]) if (factor * power >= count) return factor * power;
  }
}

function summary(days: readonly DayTotal[]): string {
  return `Requests from ${days[0]?.day ?? ''} to ${days.at(-1)?.day ?? ''}: ${describe(sum(days))}. The table below lists each day.`;
}

function describe({ served, refused, failed }: UsageCounts): string {
  return `${formatNumber(served)} served, ${formatNumber(refused)} refused, ${formatNumber(failed)} failed`;
}

/** @returns the number of all requests */
export function total({ served, refused, failed }: UsageCounts): number {
  return served + refused + failed;
}

/** @returns the sum of several rows */
function sum(rows: readonly UsageCounts[]): UsageCounts {
  const sumOf = (name: keyof UsageCounts): number => rows.reduce((added, row) => added + row[name], 0);
  return { served: sumOf('served'), refused: sumOf('refused'), failed: sumOf('failed') };
}

function compact(count: number): string {
  return count.toLocaleString('en-US', { notation: 'compact' });
}

/** Two decimals are less than a pixel. */
function round(value: number): number {
  return Math.round(value * 100) / 100;
}
