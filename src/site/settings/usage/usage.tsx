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
import type { UsageCounts } from '../../../usage/write-usage.js';
import type { PageRouter, SiteParts } from '../../context.js';
import { Table } from '../../layout/components.js';
import { formatNumber, UserText } from '../../layout/values.js';
import type { Guards, SettingsContext } from '../guards.js';
import { Pager, readListPage, type ListPage } from '../list-page.js';
import { settingsPage } from '../settings-page.js';
import { total, UsageChart } from './chart.js';
import { Quotas } from './quotas.js';

const PATH = '/settings/usage';

/** Adds the usage of a developer: the remaining quota, and the requests of the last 30 days. */
export function addUsage(router: PageRouter, { db, limiter }: SiteParts, { requireSession }: Guards): void {
  /** Whose usage is requested: that of the developer's key in `?key=`, otherwise that of all keys. */
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
      const states = await Promise.all(
        plans.map(async (plan) => ({ plan, state: await limiter.read({ developerId, plan }) })),
      );
      const days = await readUsageByDay(db, owner);
      const keys = await readListPage(ctx, (slice) => readUsageByKey(db, owner, slice));
      settingsPage(
        ctx,
        { title: 'Usage', tab: 'usage' },
        <Usage states={states} days={days} keys={keys} chosen={owner.keyPrefix} />,
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
  readonly states: readonly { readonly plan: Plan; readonly state: QuotaState }[];
  readonly days: readonly DayTotal[];
  readonly keys: ListPage<KeyTotal>;
  /** The prefix of the one key shown; undefined for all. */
  readonly chosen: string | undefined;
}

function Usage({ states, days, keys, chosen }: UsageProps): VNode {
  return (
    <>
      <section aria-labelledby="now">
        <h2 id="now">Remaining quota</h2>
        <Quotas states={states} />
      </section>
      <section aria-labelledby="days">
        <h2 id="days">The last {SHOWN_DAYS} days</h2>
        {chosen !== undefined && (
          <p>
            Showing only <code>{chosen}</code>. <a href={PATH}>Show all keys</a>
          </p>
        )}
        <UsageChart days={days} />
        <p class="muted small">
          Refused requests exceeded a plan limit. Failed requests are errors on our side. Days are in UTC. Counts are
          saved about every 10 seconds and are approximate: a server crash can lose unsaved counts, and a lost database
          connection can cause counts to be added twice.
        </p>
        <p>
          <a href={`${PATH}.csv${chosen === undefined ? '' : `?key=${chosen}`}`}>Download as CSV</a>
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

const COUNT_COLUMNS = ['Served', 'Refused', 'Failed', 'Total'].map((label) => ({
  label,
  numeric: true as const,
}));

function countCells(counts: UsageCounts): string[] {
  return [counts.served, counts.refused, counts.failed, total(counts)].map(formatNumber);
}

function KeyTable({ keys }: { readonly keys: ListPage<KeyTotal> }): VNode {
  if (keys.rows.length === 0 && keys.number === 1) {
    return <p class="empty">No requests in the last {SHOWN_DAYS} days</p>;
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
