import type { Knex } from 'knex';
import type { VNode } from 'preact';
import { ERROR_CODES } from '../../errors.js';
import { existsInCalendar } from '../../platform/time/calendar.js';
import { listFailures } from '../../usage/failed-requests.js';
import type { SiteParts } from '../parts/context.js';
import { FailureList, KEPT, MAX_REQUEST_ID } from '../parts/failed-requests.js';
import { findLeftOut, LeftOut } from '../parts/forms/left-out.js';
import { BY_TIME, optionOf, Pager, readListPage, readListSearch } from '../parts/forms/list-page.js';
import { queryOf } from '../parts/web/addresses.js';
import { Choice, failuresAddress, FilterForm, OperationChoice, readKeyChoice, readOperation } from './filters.js';
import { type Guards, type SettingsContext, type SettingsRouter, settingsPage } from './settings-page.js';

const PATH = failuresAddress();

/** The beginning of an hour in an address, in UTC: as a field of the type `datetime-local` has it. */
const HOUR = /^(20\d\d-[01]\d-[0-3]\dT[0-2]\d):\d\d$/;

/** The request errors of a developer, as far as they were chosen. */
async function loadFailures(db: Knex, ctx: SettingsContext, requestId: string | undefined) {
  const { developerId } = ctx.state.session;
  const keys = await readKeyChoice(db, ctx);
  const parameters = queryOf(ctx);
  const hour = HOUR.exec(parameters.get('hour') ?? '')?.[1];
  const filters = {
    code: optionOf(parameters, 'code', ERROR_CODES),
    operation: readOperation(parameters),
    hour: hour !== undefined && existsInCalendar(`${hour}:00`) ? `${hour}:00Z` : undefined,
  };
  const query = { developerId, keyPrefix: keys.chosen?.prefix, requestId, ...filters };
  const failures = await readListPage(ctx, BY_TIME, (part) => listFailures(db, { ...query, ...part }));
  return { keys, ...filters, requestId, failures, leftOut: findLeftOut(ctx, { key: keys.chosen, ...filters }) };
}

/** Adds the list of request errors. */
export function addFailedRequests(router: SettingsRouter, { db }: SiteParts, { requireSession }: Guards): void {
  router.get(PATH, requireSession, async (ctx) => {
    const search = readListSearch(ctx, MAX_REQUEST_ID, { name: 'request', key: 'key' });
    if (search === undefined) return;
    settingsPage(
      ctx,
      { title: 'Request errors', tab: 'usage', trail: { path: '/settings/usage', label: 'Usage' } },
      <FailuresPage {...await loadFailures(db, ctx, search || undefined)} />,
    );
  });
}

function FailuresPage(shown: Awaited<ReturnType<typeof loadFailures>>): VNode {
  const { keys, code, operation, hour, requestId, failures, leftOut } = shown;
  const isFiltered = [code, operation, hour, requestId].some((value) => value !== undefined);
  return (
    <>
      <p>{KEPT}</p>
      <LeftOut filters={leftOut} />
      <div class="toolbar">
        <FilterForm path={PATH} keys={keys} isFiltered={isFiltered}>
          <Choice name="code" label="Error" all="All errors" options={Object.keys(ERROR_CODES)} value={code} />
          <OperationChoice value={operation} />
          <label>
            Hour (UTC)
            <input class="input" type="datetime-local" name="hour" step={3600} value={hour?.slice(0, 16)} />
          </label>
          <label>
            Request ID
            <input class="input" name="request" value={requestId} maxLength={MAX_REQUEST_ID} autocomplete="off" />
          </label>
        </FilterForm>
      </div>
      <FailureList failures={failures.rows} isFiltered={isFiltered || keys.chosen !== undefined} />
      <Pager page={failures} />
      <p class="muted small">
        Times are in UTC. An error shows here about ten seconds later. A server that crashes loses those it has not
        saved. We can’t attribute requests without a key of yours, so they aren’t listed.
      </p>
    </>
  );
}
