import type { Knex } from 'knex';
import type { VNode } from 'preact';
import { listEvents } from '../../../events/events.js';
import { isAccepted, hintsOf } from '../../../keys/key-record.js';
import { findPredecessor } from '../../../keys/keys.js';
import { formatCount } from '../../../platform/text/count.js';
import { total } from '../../../usage/outcome.js';
import { readUsage, type OutcomeTotal } from '../../../usage/read-usage.js';
import { Button, Notice, RelativeTime, Time } from '../../parts/content/components.js';
import type { SiteParts } from '../../parts/context.js';
import { EventTable } from '../../parts/events.js';
import { BY_TIME, Pager, readListPage } from '../../parts/forms/list-page.js';
import { KeyReference, keyPath, KeyFacts } from '../../parts/keys.js';
import { readTogether } from '../../parts/read-together.js';
import { Outcomes } from '../../parts/usage.js';
import { failuresAddress } from '../filters.js';
import { FirstCall } from '../first-call.js';
import { settingsPage, type Guards, type SettingsContext, type SettingsRouter } from '../settings-page.js';
import { KEYS_PATH, KEY_PATH, loadKey } from './one-key.js';

type KeyDetails = Awaited<ReturnType<typeof loadKeyDetails>>;

/** A key, the one that it replaces, its requests in the last 30 days and its events. */
async function loadKeyDetails(db: Knex, ctx: SettingsContext) {
  const record = await loadKey(db, ctx);
  const { developerId, prefix: keyPrefix } = record;
  const { usage, ...read } = await readTogether({
    replaced: () => findPredecessor(db, keyPrefix),
    usage: () => readUsage(db, { developerId, keyPrefix }, '30d', { limit: 1 }),
    events: () => readListPage(ctx, BY_TIME, (part) => listEvents(db, { developerId, keyPrefix, ...part })),
  });
  const refused = usage.ways.filter(({ outcome }) => outcome === 'invalid_api_key');
  return {
    record,
    usage: usage.keys[0],
    /** How many requests were refused because the key had ended. */
    refusals: refused.reduce((sum, { requests }) => sum + requests, 0),
    ...read,
  };
}

/** Adds the page of a key. Only an active key of a developer who is not suspended can be changed. */
export function addKeyPage(router: SettingsRouter, { db }: SiteParts, { requireSession }: Guards): void {
  router.get(KEY_PATH, requireSession, async (ctx) => {
    const details = await loadKeyDetails(db, ctx);
    const { label, prefix } = details.record;
    const trail = { path: KEYS_PATH, label: 'All keys' };
    settingsPage(ctx, { title: label ?? prefix, isUserText: true, tab: 'keys', trail }, <KeyPage {...details} />);
  });

  // The script polls it while it waits for the first request of a key: no content until then.
  router.get(`${KEY_PATH}/first-request.txt`, requireSession, async (ctx) => {
    const { developerId, prefix } = await loadKey(db, ctx);
    const { ways } = await readUsage(db, { developerId, keyPrefix: prefix }, '24h', { limit: 1 });
    const [request] = ways;
    ctx.status = request === undefined ? 204 : 200;
    if (request !== undefined) ctx.body = describeFirst(request);
  });
}

function KeyPage({ record, replaced, usage, refusals, events }: KeyDetails): VNode {
  const { prefix, successor, expiresAt, revokedAt, lastUsedAt, lastRefusedAt } = record;
  const canChange = isAccepted(record) && !record.isSuspended;
  return (
    <>
      <KeyFacts
        record={record}
        canChange={canChange}
        more={{ Replaces: replaced !== undefined && <KeyReference prefix={replaced.prefix} label={null} /> }}
      />
      {lastRefusedAt !== null && !canChange && refusals > 0 && (
        <Notice tone="warning">
          {Date.parse(lastRefusedAt) > Date.parse(revokedAt ?? expiresAt ?? '') && 'Still in use: '}
          {formatCount(refusals)} {refusals === 1 ? 'request' : 'requests'} with this key{' '}
          {refusals === 1 ? 'was' : 'were'} refused in the last 30 days, the last on <Time at={lastRefusedAt} />.{' '}
          <a href={failuresAddress({ keyPrefix: prefix, code: 'invalid_api_key' })}>See which</a>
        </Notice>
      )}
      {canChange && hintsOf(record).some(({ kind }) => kind === 'no_replacement') && (
        <Notice tone="warning">
          This key ends {expiresAt !== null && <RelativeTime at={expiresAt} />} and has no replacement:{' '}
          <code>{successor?.prefix}</code> is no longer active. <a href="/settings/keys/new">Create a key</a>, or{' '}
          <a href={`${keyPath(prefix)}/expiry`}>change the expiry</a> of this one.
        </Notice>
      )}
      {canChange && (
        <p class="cluster">
          {successor === null && <Button href={`${keyPath(prefix)}/roll`} label="Roll key" />}
          <Button href={`${keyPath(prefix)}/revoke`} tone="danger" label="Revoke key" />
        </p>
      )}
      {canChange && successor === null && lastUsedAt === null && <FirstCall keyPrefix={prefix} />}
      <section>
        <h2 id="usage">Requests in the last 30 days</h2>
        {usage === undefined ? (
          <p>None{isAccepted(record) && '. Requests appear after about ten seconds'}.</p>
        ) : (
          <>
            <Outcomes counts={usage} />
            <p>
              <a href={`/settings/usage?key=${prefix}`}>Usage of this key by day</a>
              {usage.successful < total(usage) && [
                ' · ',
                <a href={failuresAddress({ keyPrefix: prefix })}>Request errors of this key</a>,
              ]}
            </p>
          </>
        )}
      </section>
      <section>
        <h2 id="events">Events</h2>
        <EventTable events={events.rows} isOfOneKey />
        <Pager page={events} />
      </section>
    </>
  );
}

/** @returns the outcome of the first requests with a key, in a sentence */
function describeFirst({ operation, outcome }: OutcomeTotal): string {
  const what = operation === '' ? 'a request to a path that does not exist' : `a request to ${operation}`;
  return outcome === 'success' ? `Received: ${what}, successful.` : `Received: ${what}, which failed: ${outcome}.`;
}
