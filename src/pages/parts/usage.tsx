import type { VNode } from 'preact';
import { formatCount } from '../../platform/text/count.js';
import { USAGE_RANGES, type UsageBucket, type UsageRange } from '../../usage/read-usage.js';
import type { UsageCounts } from '../../usage/write-usage.js';
import { Stats } from './content/components.js';
import { numeric, Table } from './content/table.js';

/** The columns of {@link countCells}. */
export const COUNT_COLUMNS = numeric('Total', 'Served', 'Rate limited', 'Failed', 'Success');

export function countCells(counts: UsageCounts): string[] {
  return [...[total(counts), counts.served, counts.refused, counts.failed].map(formatCount), successRate(counts)];
}

/** The number of requests, and what became of them. */
export function Outcomes({ counts }: { readonly counts: UsageCounts }): VNode {
  const { served, refused, failed } = counts;
  return (
    <Stats
      stats={{
        Requests: formatCount(total(counts)),
        Served: formatCount(served),
        'Rate limited': formatCount(refused),
        Failed: formatCount(failed),
      }}
    />
  );
}

/** Requests over time: a chart of each outcome, and the numbers as a table. */
export function UsageOverTime({ range, buckets }: ChartsProps): VNode {
  const { unit } = USAGE_RANGES[range];
  return (
    <>
      <UsageCharts range={range} buckets={buckets} />
      <details class="fold">
        <summary>
          <h3>Numbers by {unit}</h3>
        </summary>
        <Table
          caption={`Requests by ${unit}`}
          columns={[unit === 'hour' ? 'Hour (UTC)' : 'Day (UTC)', ...COUNT_COLUMNS]}
          rows={buckets
            .toReversed()
            .map((bucket) => [<span class="nowrap">{bucketName(bucket.start, range)}</span>, ...countCells(bucket)])}
          totals={['Total', ...countCells(sumOf(buckets))]}
        />
      </details>
    </>
  );
}

/** @returns the number of all requests */
export function total({ served, refused, failed }: UsageCounts): number {
  return served + refused + failed;
}

/** @returns the sum of several rows */
export function sumOf(rows: readonly UsageCounts[]): UsageCounts {
  const sum = (name: keyof UsageCounts): number => rows.reduce((added, row) => added + row[name], 0);
  return { served: sum('served'), refused: sum('refused'), failed: sum('failed') };
}

/** @returns the part of requests that were served, such as `99.9%`: 100% only when all were. A dash for no requests */
export function successRate(counts: UsageCounts): string {
  const all = total(counts);
  if (all === 0) return '–';
  return counts.served === all ? '100%' : `${(Math.floor((counts.served / all) * 1000) / 10).toFixed(1)}%`;
}

/** What is drawn: one chart each, so that a few refusals are visible beside a million requests. */
const SERIES = [
  { name: 'served', label: 'Served', className: 'chart-bar', height: 180 },
  { name: 'refused', label: 'Rate limited (429)', className: 'chart-bar chart-bar-refused', height: 96 },
  { name: 'failed', label: 'Failed on our side (5xx)', className: 'chart-bar chart-bar-failed', height: 96 },
] as const;

/** In pixels: above the highest line, and below the axis. */
const TOP = 8;
const BOTTOM = 24;

/** The width of the numbers beside a chart. */
const SCALE_WIDTH = 44;

/** The most lines of the grid above the axis, by the height of a chart. */
const PIXELS_PER_LINE = 36;

/** In pixels: a count above 0 is always visible. */
const LEAST_BAR = 2;

/** The part of a bucket that stays free at each side of its bar. */
const GAP = 0.12;

interface ChartsProps {
  readonly range: UsageRange;
  readonly buckets: readonly UsageBucket[];
}

/** Requests over time as bars, on a scale for each of {@link SERIES} that has any. */
function UsageCharts(props: ChartsProps): VNode {
  return (
    <div class="usage-charts">
      {SERIES.filter(({ name }) => props.buckets.some((bucket) => bucket[name] > 0)).map((series) => (
        <Chart key={series.name} series={series} {...props} />
      ))}
    </div>
  );
}

/**
 * One series. Lengths along the time are percentages and all others are pixels, so the chart fits any width and its
 * text keeps its size. Only attributes are used: the content security policy forbids styles.
 */
function Chart({ series, range, buckets }: ChartsProps & { readonly series: (typeof SERIES)[number] }): VNode {
  const { name, label, className, height } = series;
  const counts = buckets.map((bucket) => bucket[name]);
  const sum = counts.reduce((added, count) => added + count, 0);
  const lines = scaleLines(Math.max(0, ...counts), Math.floor(height / PIXELS_PER_LINE));
  const y = (count: number): number => round(TOP + height * (1 - count / (lines.at(-1) ?? 1)));
  const percent = (position: number): string => `${round((position * 100) / buckets.length)}%`;
  const { unit } = USAGE_RANGES[range];
  return (
    <figure class="usage-chart">
      <figcaption>
        {label} <strong>{formatCount(sum)}</strong>
      </figcaption>
      <div class="chart">
        <svg
          width="100%"
          height={TOP + height + BOTTOM}
          role="img"
          aria-label={`Chart by ${unit}, at most ${formatCount(Math.max(...counts))} in one ${unit}`}
        >
          {/* The numbers stand in the table. */}
          <g aria-hidden="true">
            {lines.map((count) => (
              <line
                key={count}
                class={count === 0 ? 'chart-axis' : 'chart-grid'}
                x1="0"
                x2="100%"
                y1={y(count)}
                y2={y(count)}
              />
            ))}
            {buckets.map(({ start, [name]: count }, index) => (
              <g key={start} class="chart-bucket">
                <title>{`${bucketName(start, range)}: ${formatCount(count)}`}</title>
                <rect class="chart-hit" x={percent(index)} width={percent(1)} y={TOP} height={height} />
                {count > 0 && (
                  <rect
                    class={className}
                    x={percent(index + GAP)}
                    width={percent(1 - 2 * GAP)}
                    y={Math.min(y(count), y(0) - LEAST_BAR)}
                    height={Math.max(y(0) - y(count), LEAST_BAR)}
                  />
                )}
                {isLabelled(start, range) && (
                  <text class="chart-label" x={percent(index + GAP)} y={TOP + height + BOTTOM - 6}>
                    {shortBucketName(start, range)}
                  </text>
                )}
              </g>
            ))}
          </g>
        </svg>
        <svg width={SCALE_WIDTH} height={TOP + height + BOTTOM} aria-hidden="true" focusable="false">
          {lines.map((count) => (
            <text key={count} class="chart-label" x="8" y={y(count) + 4}>
              {count.toLocaleString('en-US', { notation: 'compact' })}
            </text>
          ))}
        </svg>
      </div>
    </figure>
  );
}

/**
 * @returns the lines of a scale, from 0 to the first that is not below a count, in whole steps of 1, 2 or 5 times a
 * power of ten
 */
export function scaleLines(most: number, mostLines: number): readonly number[] {
  for (let power = 1; ; power *= 10) {
    for (const factor of [1, 2, 5]) {
      const step = factor * power;
      const above = Math.max(1, Math.ceil(most / step));
      if (above <= mostLines) return Array.from({ length: above + 1 }, (_, line) => line * step);
    }
  }
}

/** Two decimals are less than a pixel. */
function round(value: number): number {
  return Math.round(value * 100) / 100;
}

const DAY = new Intl.DateTimeFormat('en-US', { month: 'short', day: 'numeric', timeZone: 'UTC' });
const WEEKDAY = new Intl.DateTimeFormat('en-US', { weekday: 'short', timeZone: 'UTC' });

/** Every so many hours have their time below the axis. */
const HOURS_PER_LABEL = 6;

/** @returns a name for an hour or a day of UTC: `Nov 23, 14:00` or `Nov 23` @param start - when it begins */
function bucketName(start: string, range: UsageRange): string {
  const day = DAY.format(new Date(start));
  return range === '24h' ? `${day}, ${timeOf(start)}` : day;
}

/** @returns a name for below an axis: a time or the day that begins, a weekday, or a day */
function shortBucketName(start: string, range: UsageRange): string {
  if (range === '24h' && hourOf(start) !== 0) return timeOf(start);
  return (range === '7d' ? WEEKDAY : DAY).format(new Date(start));
}

/** Whether an hour or a day has its name below the axis: all would overlap on a narrow screen. */
function isLabelled(start: string, range: UsageRange): boolean {
  if (range === '24h') return hourOf(start) % HOURS_PER_LABEL === 0;
  return range === '7d' || new Date(start).getUTCDay() === 1;
}

function hourOf(start: string): number {
  return Number(start.slice(11, 13));
}

function timeOf(start: string): string {
  return start.slice(11, 16);
}
