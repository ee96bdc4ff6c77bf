import type { VNode } from 'preact';
import { formatCount } from '../../../platform/text/count.js';
import { USAGE_RANGES } from '../../../usage/read-usage.js';
import type { UsageCounts } from '../../../usage/write-usage.js';
import { numeric, Table } from '../content/table.js';
import { bucketName, UsageCharts, type ChartsProps } from './chart.js';
import { Stats } from '../content/components.js';

/** The columns of {@link countCells}. */
export const COUNT_COLUMNS = numeric('Total', 'Served', 'Refused', 'Failed', 'Success');

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
        Refused: formatCount(refused),
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
