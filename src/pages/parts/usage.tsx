import type { VNode } from 'preact';
import { formatCount } from '../../platform/text/count.js';
import { KIND_NAMES, KINDS, total, type UsageCounts } from '../../usage/outcome.js';
import { Stats, type Named } from './content/components.js';
import { numeric } from './content/table.js';

/** @returns the name of a kind of outcome, as a label */
function labelOf(kind: keyof UsageCounts): string {
  const name = KIND_NAMES[kind];
  return name.charAt(0).toUpperCase() + name.slice(1);
}

/** The columns of {@link countCells}. */
export const COUNT_COLUMNS = numeric('Total', ...KINDS.map(labelOf), 'Success');

/** A number for each of {@link COUNT_COLUMNS}. */
export function countCells(counts: UsageCounts): string[] {
  return [...[total(counts), ...KINDS.map((kind) => counts[kind])].map(formatCount), successRate(counts)];
}

/** More than this part of the requests is many, for what the client can change. */
export const MANY = 0.1;

/** Whether so many requests ended in a way that somebody should act. One error of the service's own is enough. */
function isAlarming(kind: keyof UsageCounts, counts: UsageCounts): boolean {
  if (kind === 'successful') return false;
  return counts[kind] > (kind === 'serverErrors' ? 0 : MANY * total(counts));
}

interface OutcomesProps {
  readonly counts: UsageCounts;
  /** Other figures, which come first. */
  readonly first?: Named;
}

/** The number of requests, by outcome. The marks are those of the chart; alarming ones stand out. */
export function Outcomes({ counts, first }: OutcomesProps): VNode {
  const marked = (kind: keyof UsageCounts, text: string): VNode => (
    <span class={counts[kind] > 0 ? `outcome outcome-${kind}` : undefined}>
      {isAlarming(kind, counts) ? (
        <strong class={kind === 'rateLimited' ? 'alarm tone-warning' : 'alarm tone-danger'}>
          {text}
          <span class="visually-hidden">, needs attention</span>
        </strong>
      ) : (
        text
      )}
    </span>
  );
  return (
    <Stats
      stats={{
        ...first,
        Requests: formatCount(total(counts)),
        'Success rate': marked('successful', successRate(counts)),
        ...Object.fromEntries(
          KINDS.filter((kind) => kind !== 'successful').map((kind) => [
            labelOf(kind),
            marked(kind, formatCount(counts[kind])),
          ]),
        ),
      }}
    />
  );
}

/** @returns the sum of several rows */
export function sumOf(rows: readonly UsageCounts[]): UsageCounts {
  const sums = KINDS.map((kind) => [kind, rows.reduce((added, row) => added + row[kind], 0)] as const);
  return Object.fromEntries(sums) as Readonly<Record<keyof UsageCounts, number>>;
}

/** @returns the share of requests with success (2xx or 304), such as `99.9%`: 100% only for all. A dash for no requests */
function successRate(counts: UsageCounts): string {
  const all = total(counts);
  if (all === 0) return '–';
  return counts.successful === all ? '100%' : `${Math.min((counts.successful / all) * 100, 99.9).toFixed(1)}%`;
}
