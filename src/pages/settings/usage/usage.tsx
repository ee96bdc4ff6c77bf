import { Readable } from 'node:stream';
import type { Knex } from 'knex';
import type { VNode } from 'preact';
import { ERROR_CODES, type ErrorCode } from '../../../errors.js';
import { formatCount } from '../../../platform/text/count.js';
import { OUTCOMES, total, type Outcome } from '../../../usage/outcome.js';
import { readUsage, readUsageCsv, USAGE_RANGES, type Usage, type UsageRange } from '../../../usage/read-usage.js';
import { numeric, Table } from '../../parts/content/table.js';
import type { SiteParts } from '../../parts/context.js';
import { findLeftOut, LeftOut } from '../../parts/forms/left-out.js';
import { optionOf, Pager, readListPage, Switch } from '../../parts/forms/list-page.js';
import { PageError } from '../../parts/frame/error-page.js';
import { KeyName } from '../../parts/keys.js';
import { readTogether } from '../../parts/read-together.js';
import { COUNT_COLUMNS, countCells, Outcomes, sumOf } from '../../parts/usage.js';
import { UsageOverTime } from '../../parts/usage-chart.js';
import { pageAddress, queryOf } from '../../parts/web/addresses.js';
import {
  addressOf,
  Choice,
  DEFAULT_RANGE,
  failuresAddress,
  FilterForm,
  OperationChoice,
  readKeyChoice,
  readOperation,
} from '../filters.js';
import { settingsPage, type Guards, type SettingsContext, type SettingsRouter } from '../settings-page.js';
import { Quotas, readPlanStates } from './quotas.js';

const PATH = '/settings/usage';

/** The names of the ranges. */
const RANGES: Readonly<Record<UsageRange, string>> = { '24h': '24 hours', '7d': '7 days', '30d': '30 days' };

type ChosenUsage = Awaited<ReturnType<typeof loadUsage>>;

/** Reads what the address limits the requests to. */
async function readChoice(db: Knex, ctx: SettingsContext) {
  const query = queryOf(ctx);
  const keys = await readKeyChoice(db, ctx);
  const range = optionOf(query, 'range', USAGE_RANGES);
  const filters = { operation: readOperation(query), outcome: optionOf(query, 'outcome', OUTCOMES) };
  return {
    keys,
    choice: { ...filters, range: range ?? DEFAULT_RANGE, keyPrefix: keys.chosen?.prefix },
    leftOut: findLeftOut(ctx, { ...filters, range, key: keys.chosen }),
  };
}

/** The chosen usage of a developer, and the rest of the limits. */
async function loadUsage(parts: SiteParts, ctx: SettingsContext) {
  const { db } = parts;
  const { developerId } = ctx.state.session;
  const chosen = await readChoice(db, ctx);
  const { choice } = chosen;
  let reading: Promise<Usage> | undefined;
  const { plans, totals } = await readTogether({
    plans: () => readPlanStates(parts, developerId),
    totals: () =>
      readListPage(ctx, { keyPrefix: 'prefix' }, async (part) => {
        reading = readUsage(db, { developerId, ...choice }, choice.range, part);
        return (await reading).keys;
      }),
  });
  const { buckets = [], ways = [] } = (await reading) ?? {};
  return { ...chosen, plans, totals, buckets, ways };
}

/** Adds the usage of a developer: how much of the limits is used, and the requests over time and by key. */
export function addUsage(router: SettingsRouter, parts: SiteParts, { requireSession }: Guards): void {
  router.get(PATH, requireSession, async (ctx) => {
    settingsPage(ctx, { title: 'Usage', tab: 'usage' }, <UsagePage {...await loadUsage(parts, ctx)} />);
  });

  router.get(`${PATH}.csv`, requireSession, async (ctx) => {
    const { choice, leftOut } = await readChoice(parts.db, ctx);
    if (leftOut.length > 0) {
      const detail = [
        'A filter of this address does not apply. ',
        <a href={pageAddress(PATH, queryOf(ctx))}>See which</a>,
      ];
      throw new PageError(404, 'Nothing to export', detail);
    }
    const { developerId } = ctx.state.session;
    const csv = await readUsageCsv(parts.db, { developerId, ...choice }, choice.range);
    ctx.status = 200;
    ctx.set({
      'Content-Type': 'text/csv; charset=utf-8',
      'Content-Disposition': 'attachment; filename="usage.csv"',
    });
    ctx.body = Readable.from(csv);
  });
}

function UsagePage(usage: ChosenUsage): VNode {
  const { choice, leftOut, plans, buckets } = usage;
  const { range, outcome } = choice;
  const counts = sumOf(buckets);
  const errors = { ...choice, code: errorOf(outcome) };
  return (
    <>
      <section>
        <LeftOut filters={leftOut} />
        <Toolbar {...usage} />
        <h2 id="requests">Requests in the last {RANGES[range]}</h2>
        <Outcomes counts={counts} />
        {counts.successful < total(counts) && (
          <p>
            <a href={failuresAddress(errors)}>See the request errors</a>
          </p>
        )}
        {total(counts) === 0 ? (
          <p class="empty">No such requests in the last {RANGES[range]}</p>
        ) : (
          <UsageOverTime
            range={range}
            buckets={buckets}
            {...(range === '24h' && { errorsOf: (hour: string) => failuresAddress({ ...errors, hour }) })}
          />
        )}
      </section>
      <section>
        <h2 id="limits">Limits</h2>
        <Quotas states={plans} />
        <p class="muted small">The 24-hour window starts with your first request, not at midnight.</p>
      </section>
      <section>
        <h2 id="details">Details</h2>
        {total(counts) > 0 && (
          <>
            <ByWay {...usage} />
            <ByKey {...usage} />
          </>
        )}
        <p>
          <a href={addressOf(`${PATH}.csv`, choice)}>Export the last {RANGES[range]} (CSV)</a>
        </p>
        <p class="muted small">
          All times are in UTC. Client errors are 4xx answers and requests that your client closed early; the codes are
          explained in <a href="/docs#errors">Errors</a>. Rate-limited requests exceeded a limit of your plan. Server
          errors are our fault. The first request of a key appears within about ten seconds, and further ones within a
          minute. Counts are approximate: a server crash can lose unsaved counts, and a lost database connection can
          cause counts to be added twice.
        </p>
      </section>
    </>
  );
}

/** The filters of the page. */
function Toolbar({ choice, keys, ways }: ChosenUsage): VNode {
  const { range, operation, outcome } = choice;
  const listed = distinct([...ways.map((way) => way.operation), operation]);
  const outcomes = distinct<Outcome>([...ways.map((way) => way.outcome), outcome]);
  return (
    <div class="toolbar">
      <Switch
        label="Time range"
        options={RANGES}
        chosen={range}
        addressOf={(each) => addressOf(PATH, { ...choice, range: each as UsageRange })}
      />
      <FilterForm path={PATH} query={{ range }} keys={keys} isFiltered={(operation ?? outcome) !== undefined}>
        <OperationChoice ids={listed} value={operation} />
        <Choice name="outcome" label="Outcome" all="All outcomes" options={outcomes} value={outcome} />
      </FilterForm>
    </div>
  );
}

function distinct<T>(values: readonly (T | undefined)[]): readonly T[] {
  return [...new Set(values)].filter((value) => value !== undefined);
}

function OperationName({ id }: { readonly id: string }): VNode {
  return id === '' ? <>Other paths</> : <code>{id}</code>;
}

/** @returns the code of an error that the log of requests may have */
function errorOf(outcome: Outcome | undefined): ErrorCode | undefined {
  return outcome !== undefined && Object.hasOwn(ERROR_CODES, outcome) ? (outcome as ErrorCode) : undefined;
}

/** The requests of each operation and outcome. An error leads to its requests. */
function ByWay({ choice, ways }: ChosenUsage): VNode {
  const shown = ways.filter(
    ({ operation, outcome }) =>
      (choice.operation ?? operation) === operation && (choice.outcome ?? outcome) === outcome,
  );
  const requestsOf = (operation: string, outcome: Outcome): string => {
    const code = errorOf(outcome);
    if (code === undefined) return addressOf(PATH, { ...choice, operation: undefined, outcome });
    return failuresAddress({ keyPrefix: choice.keyPrefix, operation, code });
  };
  return (
    <>
      <h3>By operation and outcome</h3>
      <Table
        caption="Requests by operation and outcome"
        columns={['Operation', 'Outcome', ...numeric('Requests')]}
        rows={shown.map(({ operation, outcome, requests }) => [
          <a href={addressOf(PATH, { ...choice, operation, outcome: undefined })}>
            <OperationName id={operation} />
          </a>,
          <a href={requestsOf(operation, outcome)}>
            <code>{outcome}</code>
          </a>,
          formatCount(requests),
        ])}
      />
    </>
  );
}

/** The requests of each key. */
function ByKey({ choice, totals, buckets }: ChosenUsage): VNode {
  return (
    <>
      <h3>By key</h3>
      <Table
        caption="Requests by key"
        columns={['Key', ...COUNT_COLUMNS]}
        rows={totals.rows.map((row) => [
          <KeyName
            prefix={row.keyPrefix}
            label={row.label}
            address={addressOf(PATH, { ...choice, keyPrefix: row.keyPrefix })}
          />,
          ...countCells(row),
        ])}
        totals={['Total', ...countCells(sumOf(buckets))]}
      />
      <Pager page={totals} />
    </>
  );
}
