import { Readable } from 'node:stream';
import type { VNode } from 'preact';
import type { QuotaState } from '../../../admission/charge/limiter.js';
import { isKeyPrefix } from '../../../keys/api-key.js';
import { findKeyOf } from '../../../keys/keys.js';
import { listPlansOf, type Plan } from '../../../limits/plans.js';
import {
  readUsageByDay,
  readUsageByKey,
  readUsageCsv,
  SHOWN_DAYS,
  type DayTotal,
  type KeyTotal,
  type UsageOwner,
} from '../../../usage/daily-usage.js';
import type { UsageCounts } from '../../../usage/usage-counts.js';
import type { PageRouter, SiteParts } from '../../context.js';
import { Table } from '../../layout/components.js';
import { formatNumber } from '../../layout/numbers.js';
import { UserText } from '../../layout/user-text.js';
import type { SettingsContext } from '../context.js';
import type { Guards } from '../guards.js';
import { Pager, readListPage, type ListPage } from '../list-page.js';
import { settingsPage } from '../settings-page.js';
import { UsageChart } from './chart.js';
import { Quotas } from './quotas.js';
import { total } from './totals.js';

const PATH = '/settings/usage';

/** Adds the usage of a developer: where the plans stand now, and the requests of the last 30 days. */
export function addUsage(router: PageRouter, { db, limiter }: SiteParts, { requireSession }: Guards): void {
  /** Whose usage a request asks for: of the key that `?key=` names, where the developer has it, otherwise of all. */
  async function ownerOf({ state }: SettingsContext): Promise<UsageOwner> {
    const { developerId } = state.session;
    const prefix = state.target.search.get('key') ?? '';
    const key = isKeyPrefix(prefix) ? await findKeyOf(db, developerId, prefix) : undefined;
    return { developerId, keyPrefix: key?.prefix };
  }

  router.get(
    PATH,
    requireSession(async (ctx) => {
      const owner = await ownerOf(ctx);
      const { developerId } = owner;
      const plans = await listPlansOf(db, developerId);
      const standings = await Promise.all(
        plans.map(async (plan) => ({ plan, standing: await limiter.read({ developerId, plan }) })),
      );
      const days = await readUsageByDay(db, owner);
      const keys = await readListPage(ctx, (slice) => readUsageByKey(db, owner, slice));
      settingsPage(
        ctx,
        { title: 'Usage', tab: 'usage' },
        <Usage standings={standings} days={days} keys={keys} chosen={owner.keyPrefix} />,
      );
    }),
  );

  router.get(
    `${PATH}.csv`,
    requireSession(async (ctx) => {
      const parts = await readUsageCsv(db, await ownerOf(ctx));
      ctx.status = 200;
      ctx.set({
        'Content-Type': 'text/csv; charset=utf-8',
        'Content-Disposition': 'attachment; filename="usage.csv"',
      });
      ctx.body = Readable.from(parts);
    }),
  );
}

interface UsageProps {
  readonly standings: readonly { readonly plan: Plan; readonly standing: QuotaState }[];
  readonly days: readonly DayTotal[];
  readonly keys: ListPage<KeyTotal>;
  /** The prefix of the one key that is shown; undefined for all. */
  readonly chosen: string | undefined;
}

function Usage({ standings, days, keys, chosen }: UsageProps): VNode {
  return (
    <>
      <section aria-labelledby="now">
        <h2 id="now">Now</h2>
        <Quotas standings={standings} />
      </section>
      <section aria-labelledby="days">
        <h2 id="days">The last {SHOWN_DAYS} days</h2>
        {chosen !== undefined && (
          <p>
            Only the key <code>{chosen}</code>. <a href={PATH}>Show all keys</a>
          </p>
        )}
        <UsageChart days={days} />
        <p class="muted small">
          Refused are requests above a limit of the plan. Days are those of UTC. Servers save their counts about every
          10 seconds. A server that crashes loses its unsaved counts, and counts may be added twice when the connection
          to the database breaks.
        </p>
        <p>
          <a href={`${PATH}.csv${chosen === undefined ? '' : `?key=${chosen}`}`}>Download as CSV, by day and key</a>
        </p>
        <KeyTable keys={keys} />
        <details class="fold">
          <summary>
            <h3>By day</h3>
          </summary>
          <Table
            caption="Requests by day"
            columns={['Day', ...COUNT_COLUMNS]}
            rows={days
              .toReversed()
              .map(({ day, ...counts }) => [<span class="nowrap">{day}</span>, ...countCells(counts)])}
          />
        </details>
      </section>
    </>
  );
}

const COUNT_COLUMNS = ['Served', 'Refused', 'Failed', 'All'].map((label) => ({
  label,
  numeric: true as const,
}));

function countCells(counts: UsageCounts): string[] {
  return [counts.served, counts.refused, counts.failed, total(counts)].map(formatNumber);
}

function KeyTable({ keys }: { readonly keys: ListPage<KeyTotal> }): VNode {
  if (keys.rows.length === 0 && keys.number === 1) {
    return <p class="empty">No key made a request in this time.</p>;
  }
  return (
    <>
      <h3>By key</h3>
      <Table
        caption="Requests by key"
        columns={['Key', 'Label', ...COUNT_COLUMNS]}
        rows={keys.rows.map(({ keyPrefix, label, ...counts }) => [
          <a href={`${PATH}?key=${keyPrefix}`}>
            <code>{keyPrefix}</code>
          </a>,
          label !== null && <UserText text={label} />,
          ...countCells(counts),
        ])}
      />
      <Pager path={PATH} page={keys} />
    </>
  );
}
