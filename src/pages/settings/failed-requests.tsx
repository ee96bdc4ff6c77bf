import type { Knex } from 'knex';
import type { VNode } from 'preact';
import { printable } from '../../platform/text/plain-text.js';
import { listFailures } from '../../usage/failed-requests.js';
import type { SiteParts } from '../parts/context.js';
import { FailureTable, KEPT, MAX_REQUEST_ID } from '../parts/failed-requests.js';
import { BY_TIME, Pager, readListPage } from '../parts/forms/list-page.js';
import { pageAddress, queryOf } from '../parts/web/addresses.js';
import { KeyFilter, readKeyChoice } from './key-filter.js';
import { settingsPage, type Guards, type SettingsContext, type SettingsRouter } from './settings-page.js';

export const FAILED_REQUESTS = '/settings/usage/failed';

/** The failed requests of a developer: of one key, or the one with an id. */
async function loadFailedRequests(db: Knex, ctx: SettingsContext) {
  const { developerId } = ctx.state.session;
  const keys = await readKeyChoice(db, ctx);
  const requestId = printable((queryOf(ctx).get('request') ?? '').trim().slice(0, MAX_REQUEST_ID)) || undefined;
  const query = { developerId, keyPrefix: keys.chosen?.prefix, requestId };
  const failures = await readListPage(ctx, BY_TIME, (part) => listFailures(db, { ...query, ...part }));
  return { keys, requestId, failures };
}

/** Adds the list of failed requests. */
export function addFailedRequests(router: SettingsRouter, { db }: SiteParts, { requireSession }: Guards): void {
  router.get(FAILED_REQUESTS, requireSession, async (ctx) => {
    settingsPage(
      ctx,
      { title: 'Failed requests', tab: 'usage', trail: { path: '/settings/usage', label: 'Usage' } },
      <FailedRequestsPage {...await loadFailedRequests(db, ctx)} />,
    );
  });
}

/** @returns the address of the failed requests of a key */
export function failuresOf(prefix: string): string {
  return pageAddress(FAILED_REQUESTS, [['key', prefix]]);
}

type FailedRequests = Awaited<ReturnType<typeof loadFailedRequests>>;

function FailedRequestsPage({ keys, requestId, failures }: FailedRequests): VNode {
  return (
    <>
      <p>{KEPT}</p>
      <div class="toolbar">
        <KeyFilter path={FAILED_REQUESTS} keys={keys}>
          <label>
            Request ID
            <input class="input" name="request" value={requestId} maxLength={MAX_REQUEST_ID} autocomplete="off" />
          </label>
        </KeyFilter>
        {(keys.chosen ?? requestId) !== undefined && <a href={FAILED_REQUESTS}>Show all</a>}
      </div>
      <FailureTable failures={failures.rows} addressOf={failuresOf} />
      <Pager page={failures} />
      <p class="muted small">
        A request that failed shows here about ten seconds later. A server that crashes loses those it has not saved.
        Requests without a valid key belong to nobody and are not kept.
      </p>
    </>
  );
}
