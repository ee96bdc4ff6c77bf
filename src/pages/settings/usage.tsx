import { Readable } from 'node:stream';
import type { VNode } from 'preact';
import type { QuotaReader, QuotaState } from '../../admission/charge/limiter.js';
import { listPlansOf } from '../../keys/key-summary.js';
import type { Plan } from '../../limits/plans.js';
import type { Quota } from '../../limits/quotas.js';
import { formatCount } from '../../platform/text/count.js';
import {
  readUsageByKey,
  readUsageCsv,
  readUsageOverTime,
  USAGE_RANGES,
  type UsageRange,
} from '../../usage/read-usage.js';
import { UserText, Stats } from '../parts/content/components.js';
import { Table } from '../parts/content/table.js';
import type { SiteParts } from '../parts/context.js';
import { Pager, readListPage } from '../parts/forms/list-page.js';
import { KeyName } from '../parts/keys.js';
import { COUNT_COLUMNS, countCells, successRate, sumOf, total, UsageOverTime } from '../parts/usage.js';
import { KeyFilter, readKeyChoice } from './key-filter.js';
import { settingsPage, type Guards, type SettingsContext, type SettingsRouter } from './settings-page.js';

const PATH = '/settings/usage';

/** The names of the ranges. The last one is shown unless the address names another. */
const RANGES: Readonly<Record<UsageRange, string>> = { '24h': '24 hours', '7d': '7 days', '30d': '30 days' };
const DEFAULT_RANGE = '30d';

/** Adds the usage of a developer: how much of the limits is used, and the requests over time and by key. */
export function addUsage(router: SettingsRouter, parts: SiteParts, { requireSession }: Guards): void {
  const { db } = parts;

  router.get(PATH, requireSession, async (ctx) => {
    const { developerId } = ctx.state.session;
    const keys = await readKeyChoice(ctx, db);
    const key = keys.chosen?.prefix;
    const owner = { developerId, keyPrefix: key };
    const range = rangeOf(ctx);
    const buckets = await readUsageOverTime(db, owner, range);
    const totals = await readListPage(ctx, (slice) => readUsageByKey(db, owner, range, slice));
    const counts = sumOf(buckets);
    settingsPage(
      ctx,
      { title: 'Usage', tab: 'usage' },
      <>
        <section>
          <h2 id="limits">Limits</h2>
          <Quotas states={await readPlanStates(parts, developerId)} />
          <p class="muted small">
            The 24 hours of a limit begin with the first request after the last reset, so they are not a calendar day.
          </p>
        </section>
        <section>
          <h2 id="requests">Requests in the last {RANGES[range]}</h2>
          <div class="toolbar">
            <nav class="ranges" aria-label="Time range">
              <ul>
                {(Object.keys(RANGES) as UsageRange[]).map((each) => (
                  <li key={each}>
                    <a href={addressOf(each, key)} aria-current={each === range ? 'true' : undefined}>
                      {RANGES[each]}
                    </a>
                  </li>
                ))}
              </ul>
            </nav>
            <KeyFilter path={PATH} query={{ range }} keys={keys} />
          </div>
          {keys.chosen && (
            <p>
              Only the key {keys.chosen.label !== null && <UserText text={keys.chosen.label} />}{' '}
              <code>{keys.chosen.prefix}</code>. <a href={addressOf(range, undefined)}>Show all keys</a>
            </p>
          )}
          <Stats
            stats={{
              Requests: formatCount(total(counts)),
              'Success rate': successRate(counts),
              'Rate limited': formatCount(counts.refused),
              Failed: formatCount(counts.failed),
            }}
          />
          {total(counts) === 0 ? (
            <p class="empty">
              No requests in the last {RANGES[range]}
              {key === undefined ? '' : ' with this key'}
            </p>
          ) : (
            <>
              <UsageOverTime range={range} buckets={buckets} />
              <h3>By key</h3>
              <Table
                caption="Requests by key"
                columns={['Key', ...COUNT_COLUMNS]}
                rows={totals.rows.map((row) => [
                  <KeyName prefix={row.keyPrefix} label={row.label} address={addressOf(range, row.keyPrefix)} />,
                  ...countCells(row),
                ])}
                totals={['Total', ...countCells(counts)]}
              />
              <Pager path={addressOf(range, key)} page={totals} />
            </>
          )}
          <p>
            <a href={`${PATH}.csv${key === undefined ? '' : `?key=${key}`}`}>Download 30 days as CSV</a>
          </p>
          <p class="muted small">
            All times are in UTC. Rate-limited requests exceeded a limit of your plan. Failed requests are errors on our
            side. Counts are saved about every 10 seconds and are approximate: a server crash can lose unsaved counts,
            and a lost database connection can cause counts to be added twice.
          </p>
        </section>
      </>,
    );
  });

  router.get(`${PATH}.csv`, requireSession, async (ctx) => {
    const { chosen } = await readKeyChoice(ctx, db);
    const { developerId } = ctx.state.session;
    const csv = await readUsageCsv(db, { developerId, keyPrefix: chosen?.prefix });
    ctx.status = 200;
    ctx.set({
      'Content-Type': 'text/csv; charset=utf-8',
      'Content-Disposition': 'attachment; filename="usage.csv"',
    });
    ctx.body = Readable.from(csv);
  });
}

/** @returns the range that `?range=` names; any other value means the default */
function rangeOf({ state }: SettingsContext): UsageRange {
  const name = state.target.search.get('range') ?? '';
  return Object.hasOwn(USAGE_RANGES, name) ? (name as UsageRange) : DEFAULT_RANGE;
}

/** @returns the address of the usage of a range and a key */
function addressOf(range: UsageRange, key: string | undefined): string {
  const query = new URLSearchParams({ ...(range !== DEFAULT_RANGE && { range }), ...(key !== undefined && { key }) });
  return query.size === 0 ? PATH : `${PATH}?${query.toString()}`;
}

/** A plan of a developer, and what is left of its limits. */
export interface PlanState extends QuotaState {
  readonly plan: Plan;
}

/** Reads what is left of the limits of each plan that applies to a developer, without charging a request. */
export async function readPlanStates(
  { db, limiter }: { readonly db: SiteParts['db']; readonly limiter: QuotaReader },
  developerId: number,
): Promise<readonly PlanState[]> {
  const plans = await listPlansOf(db, developerId);
  return Promise.all(plans.map(async (plan) => ({ plan, ...(await limiter.read({ developerId, plan })) })));
}

/** How much of each plan's limits is used: a meter and the same in words. */
export function Quotas({ states }: { readonly states: readonly PlanState[] }): VNode {
  return (
    <ul class="card-grid quotas">
      {states.map(({ plan, quotas }) => (
        <li key={plan.id} class="card">
          <h3>{plan.name} plan</h3>
          {quotas.map((quota) => (
            <QuotaMeter key={quota.name} plan={plan} quota={quota} />
          ))}
        </li>
      ))}
    </ul>
  );
}

/** The parts of a limit at which the meter changes its colour. */
const HIGH = { low: 0.8, high: 0.95 };

/** @returns the part of a quota that is used, from 0 to 1, where it is so much that its owner should act */
export function highShareOf(quota: Quota): number | undefined {
  const share = usedOf(quota) / quota.limit;
  return share >= HIGH.low ? share : undefined;
}

/** @returns how many requests are charged to a quota */
function usedOf({ limit, remaining }: Quota): number {
  return limit - remaining;
}

function QuotaMeter({ plan, quota }: { readonly plan: Plan; readonly quota: Quota }): VNode {
  const { name, limit, resetSeconds } = quota;
  const id = `${plan.id}-${name}`;
  const used = usedOf(quota);
  return (
    <div class="meter-row">
      <label for={id}>
        {name === 'minute' ? 'Per minute' : 'Per 24 hours'}
        <span class="visually-hidden"> on the {plan.name} plan</span>
      </label>
      <meter
        class="meter"
        id={id}
        min={0}
        max={limit}
        low={Math.floor(limit * HIGH.low)}
        high={Math.floor(limit * HIGH.high)}
        optimum={0}
        value={used}
      >
        {formatCount(used)} used
      </meter>
      <span class="muted small">
        {formatCount(used)} of {formatCount(limit)} requests
        {used > 0 && `; resets ${resetTime(resetSeconds)}`}
      </span>
    </div>
  );
}

/** @returns when a quota resets: `in 34 s`, or `at 18:40 UTC, in 5 h 12 min` */
export function resetTime(seconds: number): string {
  if (seconds <= 120) return `in ${seconds} s`;
  const minutes = Math.ceil(seconds / 60);
  const [hours, rest] = [Math.floor(minutes / 60), minutes % 60];
  const duration = [hours > 0 ? `${hours} h` : [], rest > 0 ? `${rest} min` : []].flat().join(' ');
  return `at ${new Date(Date.now() + seconds * 1000).toISOString().slice(11, 16)} UTC, in ${duration}`;
}
