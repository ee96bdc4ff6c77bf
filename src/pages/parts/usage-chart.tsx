import type { VNode } from 'preact';
import { formatCount } from '../../platform/text/count.js';
import { USAGE_RANGES, type UsageBucket, type UsageRange } from '../../usage/read-usage.js';
import { KIND_NAMES, KINDS, total, type UsageCounts } from '../../usage/outcome.js';
import { Table } from './content/table.js';
import { COUNT_COLUMNS, countCells, sumOf } from './usage.js';

/** Requests over time: a chart stacked by outcome, and the numbers as a table. */
export function UsageOverTime({ range, buckets, ...links }: ChartsProps): VNode {
  const { unit } = USAGE_RANGES[range];
  return (
    <>
      <Chart range={range} buckets={buckets} {...links} />
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

/** The height of a chart above its axis, in pixels. */
const HEIGHT = 200;

/** In pixels: above the highest line, and below the axis. */
const TOP = 8;
const BOTTOM = 24;

/** The width of the numbers of the scale. */
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
  /** @returns the address of the errors of a bucket that has some; undefined if no errors are listed */
  readonly errorsOf?: (start: string) => string | undefined;
}

/**
 * Requests over time as stacked bars: success below, then each kind of failure. Lengths along the time are percentages
 * and all others are pixels, so the chart fits any width and its text keeps its size. Only attributes are used: the
 * content security policy forbids styles.
 */
function Chart({ range, buckets, errorsOf }: ChartsProps): VNode {
  const totals = buckets.map(total);
  const lines = scaleLines(Math.max(0, ...totals), Math.floor(HEIGHT / PIXELS_PER_LINE));
  const y = (count: number): number => round(TOP + HEIGHT * (1 - count / (lines.at(-1) ?? 1)));
  const percent = (count: number): string => `${round((count * 100) / buckets.length)}%`;
  const { unit } = USAGE_RANGES[range];
  return (
    <figure class="usage-chart">
      <div class="chart">
        <svg
          width="100%"
          height={TOP + HEIGHT + BOTTOM}
          role={errorsOf === undefined ? 'img' : 'group'}
          aria-label={`Chart by ${unit}, at most ${formatCount(Math.max(...totals))} in one ${unit}`}
        >
          <Patterns />
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
          </g>
          {buckets.map((bucket, index) => (
            <Bar
              key={bucket.start}
              bucket={bucket}
              range={range}
              index={index}
              percent={percent}
              y={y}
              errors={bucket.successful < total(bucket) ? errorsOf?.(bucket.start) : undefined}
            />
          ))}
        </svg>
        <svg width={SCALE_WIDTH} height={TOP + HEIGHT + BOTTOM} aria-hidden="true" focusable="false">
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

/** Kinds of errors that differ from each other also without their colours. */
const PATTERNS: readonly (keyof UsageCounts)[] = ['clientErrors', 'rateLimited'];

function Patterns(): VNode {
  return (
    <defs>
      {PATTERNS.map((kind) => (
        <pattern
          key={kind}
          id={`pattern-${kind}`}
          class={`outcome-${kind}`}
          width="6"
          height="6"
          patternUnits="userSpaceOnUse"
          patternTransform={kind === 'clientErrors' ? 'rotate(45)' : undefined}
        >
          <rect width="6" height="6" opacity="0.35" />
          <rect width="6" height="3" />
        </pattern>
      ))}
    </defs>
  );
}

interface BarProps {
  readonly bucket: UsageBucket;
  readonly range: UsageRange;
  /** Its place, from 0. */
  readonly index: number;
  /** A number of buckets as a part of the width. */
  readonly percent: (buckets: number) => string;
  /** Where a count stands, in pixels from the top. */
  readonly y: (count: number) => number;
  /** The address of the errors, if some are listed. */
  readonly errors: string | undefined;
}

/** The stacked bar of an hour or a day. It is a link to the errors, if there are any. */
function Bar({ bucket, range, index, percent, y, errors }: BarProps): VNode {
  const name = `${bucketName(bucket.start, range)}: ${describeCounts(bucket)}`;
  const bar = (
    <>
      <title>{name}</title>
      <rect class="chart-hit" x={percent(index)} width={percent(1)} y={TOP} height={HEIGHT} />
      {stack(bucket, y(0), (count) => y(0) - y(count)).map(({ kind, top, height }) => (
        <rect
          key={kind}
          class={`chart-bar chart-bar-${kind}`}
          fill={PATTERNS.includes(kind) ? `url(#pattern-${kind})` : undefined}
          x={percent(index + GAP)}
          width={percent(1 - 2 * GAP)}
          y={top}
          height={height}
        />
      ))}
      {isLabelled(bucket.start, range) && (
        <text class="chart-label" x={percent(index + GAP)} y={TOP + HEIGHT + BOTTOM - 6} aria-hidden="true">
          {shortBucketName(bucket.start, range)}
        </text>
      )}
    </>
  );
  // The numbers stand in the table.
  return errors === undefined ? (
    <g class="chart-bucket" aria-hidden="true">
      {bar}
    </g>
  ) : (
    <a class="chart-bucket" href={errors} aria-label={`${name}. See the request errors`}>
      {bar}
    </a>
  );
}

/** @returns `1,234 successful, 3 failed`, without kinds that do not occur */
function describeCounts(counts: UsageCounts): string {
  const parts = KINDS.filter((kind) => counts[kind] > 0).map(
    (kind) => `${formatCount(counts[kind])} ${KIND_NAMES[kind]}`,
  );
  return parts.length === 0 ? 'none' : parts.join(', ');
}

/**
 * @param axis - where the lowest part stands, in pixels from the top
 * @param heightOf - a count in pixels
 * @returns the parts of a bar, from the lowest; each is high enough to be visible next to a million others
 */
function stack(counts: UsageCounts, axis: number, heightOf: (count: number) => number) {
  let top = axis;
  return KINDS.filter((kind) => counts[kind] > 0).map((kind) => {
    const height = round(Math.max(heightOf(counts[kind]), LEAST_BAR));
    top = round(top - height);
    return { kind, top, height };
  });
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
