import type { Knex } from 'knex';
import type { VNode } from 'preact';
import { operations } from '../../api/index.js';
import { ERROR_CODES } from '../../errors.js';
import { printable } from '../../platform/text/plain-text.js';
import { existsInCalendar } from '../../platform/time/calendar.js';
import { listFailures, type FailuresQuery } from '../../usage/failed-requests.js';
import type { SiteParts } from '../parts/context.js';
import { FailureList, KEPT, MAX_REQUEST_ID } from '../parts/failed-requests.js';
import { BY_TIME, optionOf, Pager, readListPage } from '../parts/forms/list-page.js';
import { pageAddress, queryOf } from '../parts/web/addresses.js';
import { Choice, KeyFilter, readKeyChoice, type Option } from './key-filter.js';
import { OperationChoice, operationInAddress, readOperation } from './operation-choice.js';
import { settingsPage, type Guards, type SettingsContext, type SettingsRouter } from './settings-page.js';

const PATH = '/settings/usage/failed';

/** The beginning of an hour in an address, in UTC: as a field of the type `datetime-local` has it. */
const HOUR = /^(20\d\d-[01]\d-[0-3]\dT[0-2]\d):\d\d$/;

type FailureFilter = Pick<FailuresQuery, 'keyPrefix' | 'code' | 'operation' | 'hour'>;

/** @returns the address of the request errors of a kind, of all without a filter */
export function failuresAddress({ keyPrefix, code, operation, hour }: FailureFilter = {}): string {
  const query = {
    key: keyPrefix,
    code,
    operation: operationInAddress(operation),
    hour: hour?.slice(0, 16),
  };
  return pageAddress(PATH, Object.entries(query));
}

/** The request errors of a developer, as far as they were chosen. */
async function loadFailures(db: Knex, ctx: SettingsContext) {
  const { developerId } = ctx.state.session;
  const keys = await readKeyChoice(db, ctx);
  const parameters = queryOf(ctx);
  const hour = HOUR.exec(parameters.get('hour') ?? '')?.[1];
  const filter: FailureFilter = {
    keyPrefix: keys.chosen?.prefix,
    code: optionOf(parameters, 'code', ERROR_CODES),
    operation: readOperation(parameters),
    hour: hour !== undefined && existsInCalendar(`${hour}:00`) ? `${hour}:00Z` : undefined,
  };
  const requestId = printable((parameters.get('request') ?? '').trim().slice(0, MAX_REQUEST_ID)) || undefined;
  const query = { developerId, requestId, ...filter };
  const failures = await readListPage(ctx, BY_TIME, (part) => listFailures(db, { ...query, ...part }));
  return { keys, filter, requestId, failures };
}

/** Adds the list of request errors. */
export function addFailedRequests(router: SettingsRouter, { db }: SiteParts, { requireSession }: Guards): void {
  router.get(PATH, requireSession, async (ctx) => {
    settingsPage(
      ctx,
      { title: 'Request errors', tab: 'usage', trail: { path: '/settings/usage', label: 'Usage' } },
      <FailuresPage {...await loadFailures(db, ctx)} />,
    );
  });
}

function FailuresPage({ keys, filter, requestId, failures }: Awaited<ReturnType<typeof loadFailures>>): VNode {
  const { code, operation, hour } = filter;
  const isFiltered = [requestId, ...Object.values(filter)].some((value) => value !== undefined);
  return (
    <>
      <p>{KEPT}</p>
      <div class="toolbar">
        <KeyFilter path={PATH} keys={keys}>
          <Choice
            name="code"
            label="Error"
            options={[['', 'All errors'], ...Object.keys(ERROR_CODES).map((name): Option => [name, name])]}
            value={code}
          />
          <OperationChoice ids={[...Object.keys(operations), '']} value={operation} />
          <label>
            Hour (UTC)
            <input class="input" type="datetime-local" name="hour" step={3600} value={hour?.slice(0, 16)} />
          </label>
          <label>
            Request ID
            <input class="input" name="request" value={requestId} maxLength={MAX_REQUEST_ID} autocomplete="off" />
          </label>
        </KeyFilter>
        {isFiltered && <a href={PATH}>Show all</a>}
      </div>
      <FailureList failures={failures.rows} isFiltered={isFiltered} />
      <Pager page={failures} />
      <p class="muted small">
        Times are in UTC. An error shows here about ten seconds later. A server that crashes loses those it has not
        saved. We can’t attribute requests without a key of yours, so they aren’t listed.
      </p>
    </>
  );
}
