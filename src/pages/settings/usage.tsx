import { Readable } from 'node:stream';
import type { VNode } from 'preact';
import { operations } from '../../api/index.js';
import type { QuotaReader, QuotaState } from '../../admission/charge/limiter.js';
import { listPlansOf } from '../../keys/key-summary.js';
import type { Plan } from '../../limits/plans.js';
import { QUOTAS, type Quota } from '../../limits/quotas.js';
import { formatCount } from '../../platform/text/count.js';
import { OUTCOMES, type Outcome } from '../../usage/outcome.js';
import {
  readUsage,
  readUsageCsv,
  USAGE_RANGES,
  type Usage,
  type UsageOwner,
  type UsageRange,
} from '../../usage/read-usage.js';
import { UserText } from '../parts/content/components.js';
import { numeric, Table } from '../parts/content/table.js';
import type { SiteParts } from '../parts/context.js';
import { Pager, readListPage } from '../parts/forms/list-page.js';
import { KeyName } from '../parts/keys.js';
import { COUNT_COLUMNS, countCells, Outcomes, sumOf, total, UsageOverTime } from '../parts/usage.js';
import { FAILED_REQUESTS, failuresOf } from './failed-requests.js';
import { Choice, KeyFilter, readKeyChoice, type KeyChoice, type Option } from './key-filter.js';
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
    const range = rangeOf(ctx);
    const choice = { developerId, keyPrefix: keys.chosen?.prefix, ...wayOf(ctx) };
    const { operation, outcome } = choice;
    const address = (changed: Partial<Shown>): string => addressOf(PATH, { ...choice, range, ...changed });
    let reading: Promise<Usage> | undefined;
    const totals = await readListPage(
      ctx,
      { keyPrefix: 'prefix' },
      async (part) => (await (reading = readUsage(db, choice, range, part))).keys,
    );
    const { buckets = [], ways = [] } = (await reading) ?? {};
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
                    <a href={address({ range: each })} aria-current={each === range ? 'true' : undefined}>
                      {RANGES[each]}
                    </a>
                  </li>
                ))}
              </ul>
            </nav>
            <KeyFilter path={PATH} query={{ range }} keys={keys}>
              <Choice
                name="operation"
                label="Operation"
                options={[ANY, ...distinct([...ways.map((way) => way.operation), operation]).map(operationOption)]}
                value={operation === '' ? OTHER_PATHS : operation}
              />
              <Choice
                name="outcome"
                label="Outcome"
                options={[
                  ANY,
                  ...distinct([...ways.map((way) => way.outcome), outcome]).map((each): Option => [each, each]),
                ]}
                value={outcome}
              />
            </KeyFilter>
          </div>
          {(keys.chosen ?? operation ?? outcome) !== undefined && (
            <p>
              <Limits keys={keys} operation={operation} outcome={outcome} />{' '}
              <a href={addressOf(PATH, { range })}>Show all requests</a>
            </p>
          )}
          <Outcomes counts={counts} />
          {counts.served < total(counts) && (
            <p>
              <a href={keys.chosen ? failuresOf(keys.chosen.prefix) : FAILED_REQUESTS}>See the failed requests</a>
            </p>
          )}
          {total(counts) === 0 ? (
            <p class="empty">No such requests in the last {RANGES[range]}</p>
          ) : (
            <>
              <UsageOverTime range={range} buckets={buckets} />
              <h3>By operation and outcome</h3>
              <Table
                caption="Requests by operation and outcome"
                columns={['Operation', 'Outcome', ...numeric('Requests')]}
                rows={ways
                  .filter((way) => (operation ?? way.operation) === way.operation)
                  .filter((way) => (outcome ?? way.outcome) === way.outcome)
                  .map((way) => [
                    <a href={address({ operation: way.operation, outcome: undefined })}>
                      <OperationName id={way.operation} />
                    </a>,
                    <a href={address({ operation: undefined, outcome: way.outcome })}>
                      <code>{way.outcome}</code>
                    </a>,
                    formatCount(way.requests),
                  ])}
              />
              <h3>By key</h3>
              <Table
                caption="Requests by key"
                columns={['Key', ...COUNT_COLUMNS]}
                rows={totals.rows.map((row) => [
                  <KeyName prefix={row.keyPrefix} label={row.label} address={address({ keyPrefix: row.keyPrefix })} />,
                  ...countCells(row),
                ])}
                totals={['Total', ...countCells(counts)]}
              />
              <Pager page={totals} />
            </>
          )}
          <p>
            <a href={addressOf(`${PATH}.csv`, choice)}>Download 30 days as CSV</a>
          </p>
          <p class="muted small">
            All times are in UTC. Client errors are 4xx answers and requests that you cancelled; the codes are explained
            in <a href="/docs#errors">Errors</a>. Rate-limited requests exceeded a limit of your plan. Failed requests
            are errors on our side. The first request of a key appears within about ten seconds, and further ones within
            a minute. Counts are approximate: a server crash can lose unsaved counts, and a lost database connection can
            cause counts to be added twice.
          </p>
        </section>
      </>,
    );
  });

  router.get(`${PATH}.csv`, requireSession, async (ctx) => {
    const { chosen } = await readKeyChoice(ctx, db);
    const { developerId } = ctx.state.session;
    const csv = await readUsageCsv(db, { developerId, keyPrefix: chosen?.prefix, ...wayOf(ctx) });
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

/** Which operation and outcome `?operation=` and `?outcome=` name. Any other value means all. */
function wayOf({ state }: SettingsContext): Pick<UsageOwner, 'operation' | 'outcome'> {
  const operation = state.target.search.get('operation') ?? '';
  const outcome = state.target.search.get('outcome') ?? '';
  return {
    operation: operation === OTHER_PATHS ? '' : Object.hasOwn(operations, operation) ? operation : undefined,
    outcome: Object.hasOwn(OUTCOMES, outcome) ? (outcome as Outcome) : undefined,
  };
}

/** What the page is limited to. */
interface Shown extends Omit<UsageOwner, 'developerId'> {
  readonly range: UsageRange;
}

/** @returns the address of the usage of a choice */
function addressOf(path: string, { range, keyPrefix, operation, outcome }: Partial<Shown>): string {
  const query = new URLSearchParams({
    ...(range !== undefined && range !== DEFAULT_RANGE && { range }),
    ...(keyPrefix !== undefined && { key: keyPrefix }),
    ...(operation !== undefined && { operation: operation || OTHER_PATHS }),
    ...(outcome !== undefined && { outcome }),
  });
  return query.size === 0 ? path : `${path}?${query.toString()}`;
}

/** What stands in an address for the paths without an operation. */
const OTHER_PATHS = 'other';

const ANY: Option = ['', 'All'];

function operationOption(id: string): Option {
  return id === '' ? [OTHER_PATHS, 'Other paths'] : [id, id];
}

function OperationName({ id }: { readonly id: string }): VNode {
  return id === '' ? <>Other paths</> : <code>{id}</code>;
}

function distinct<T>(values: readonly (T | undefined)[]): readonly T[] {
  return [...new Set(values)].filter((value) => value !== undefined);
}

/** A sentence about what the page is limited to. */
function Limits({
  keys: { chosen },
  operation,
  outcome,
}: Pick<UsageOwner, 'operation' | 'outcome'> & { readonly keys: KeyChoice }): VNode {
  const limits = [
    chosen && (
      <>
        the key {chosen.label !== null && <UserText text={chosen.label} />} <code>{chosen.prefix}</code>
      </>
    ),
    operation !== undefined && <OperationName id={operation} />,
    outcome !== undefined && <code>{outcome}</code>,
  ].filter(Boolean);
  return <>Only {limits.map((limit, index) => [index > 0 && ', ', limit])}.</>;
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
        {QUOTAS[name].label}
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
