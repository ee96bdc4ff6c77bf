import type { VNode } from 'preact';
import type { QuotaStanding } from '../../../admission/charge/limiter.js';
import { listPlansOf, type Plan } from '../../../limits/plans.js';
import { readDailyUsage, SHOWN_DAYS, type UsageReport } from '../../../usage/daily-usage.js';
import type { UsageCounts } from '../../../usage/usage-counts.js';
import type { PageRouter, SiteParts } from '../../context.js';
import { Table } from '../../layout/components.js';
import { formatNumber } from '../../layout/numbers.js';
import { isolated, UserText } from '../../layout/user-text.js';
import type { SettingsContext } from '../context.js';
import type { Guards } from '../guards.js';
import { settingsPage } from '../settings-page.js';
import { UsageChart } from './chart.js';
import { toCsv } from './csv.js';
import { Quotas } from './quotas.js';
import { keysIn, ofKey, total, totalsByDay, totalsByKey, type KeyTotal } from './totals.js';

const PATH = '/settings/usage';

/** Adds the usage of a developer: where the plans stand now, and the requests of the last 30 days. */
export function addUsage(router: PageRouter, { db, limiter }: SiteParts, { signedIn }: Guards): void {
  router.get(
    PATH,
    signedIn(async (ctx) => {
      const { developerId } = ctx.state.session;
      const [plans, report] = await Promise.all([listPlansOf(db, developerId), readDailyUsage(db, developerId)]);
      const standings = await Promise.all(
        plans.map(async (plan) => ({ plan, standing: await limiter.read({ developerId, plan }) })),
      );
      const key = chosenKey(ctx, report);
      settingsPage(ctx, { title: 'Usage', tab: 'usage' }, <Usage standings={standings} report={report} chosen={key} />);
    }),
  );

  router.get(
    `${PATH}.csv`,
    signedIn(async (ctx) => {
      const report = await readDailyUsage(db, ctx.state.session.developerId);
      ctx.status = 200;
      ctx.set({
        'Content-Type': 'text/csv; charset=utf-8',
        'Content-Disposition': 'attachment; filename="usage.csv"',
      });
      ctx.body = toCsv(ofKey(report.rows, chosenKey(ctx, report)));
    }),
  );
}

/** @returns the prefix of the key that the request names; undefined for none, and for an unknown one */
function chosenKey({ state }: SettingsContext, { rows }: UsageReport): string | undefined {
  const asked = state.target.search.get('key');
  return keysIn(rows).find(({ keyPrefix }) => keyPrefix === asked)?.keyPrefix;
}

interface UsageProps {
  readonly standings: readonly { readonly plan: Plan; readonly standing: QuotaStanding }[];
  readonly report: UsageReport;
  readonly chosen: string | undefined;
}

function Usage({ standings, report: { days, rows }, chosen }: UsageProps): VNode {
  const shown = ofKey(rows, chosen);
  const byDay = totalsByDay(days, shown);
  return (
    <>
      <section aria-labelledby="now">
        <h2 id="now">Now</h2>
        <Quotas standings={standings} />
      </section>
      <section aria-labelledby="days">
        <h2 id="days">The last {SHOWN_DAYS} days</h2>
        <KeyChoice keys={keysIn(rows)} chosen={chosen} />
        <UsageChart days={byDay} />
        <p class="muted small">
          Refused are requests above a limit of the plan. Days are those of UTC. Servers save their counts about every
          10 seconds. A server that crashes loses those that it has not saved.
        </p>
        <p>
          <a href={`${PATH}.csv${chosen === undefined ? '' : `?key=${chosen}`}`}>Download as CSV, by day and key</a>
        </p>
        <KeyTable totals={totalsByKey(shown)} />
        <details class="fold">
          <summary>
            <h3>By day</h3>
          </summary>
          <Table
            caption="Requests by day"
            columns={['Day', ...COUNT_COLUMNS]}
            rows={byDay
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

function KeyTable({ totals }: { readonly totals: readonly KeyTotal[] }): VNode {
  if (totals.length === 0) {
    return <p class="empty">No key made a request in this time.</p>;
  }
  return (
    <>
      <h3>By key</h3>
      <Table
        caption="Requests by key"
        columns={['Key', 'Label', ...COUNT_COLUMNS]}
        rows={totals.map(({ keyPrefix, label, ...counts }) => [
          <code>{keyPrefix}</code>,
          label !== null && <UserText text={label} />,
          ...countCells(counts),
        ])}
      />
    </>
  );
}

interface KeyChoiceProps {
  readonly keys: readonly { readonly keyPrefix: string; readonly label: string | null }[];
  readonly chosen: string | undefined;
}

function KeyChoice({ keys, chosen }: KeyChoiceProps): VNode | null {
  if (keys.length < 2) return null;
  return (
    <form class="cluster usage-filter" method="get" action={PATH}>
      <label for="key">Key</label>
      <select class="input" id="key" name="key">
        <option value="">All keys</option>
        {keys.map(({ keyPrefix, label }) => (
          <option key={keyPrefix} value={keyPrefix} selected={keyPrefix === chosen}>
            {label === null ? keyPrefix : `${isolated(label)} (${keyPrefix})`}
          </option>
        ))}
      </select>
      <button class="button" type="submit">
        Show
      </button>
    </form>
  );
}
