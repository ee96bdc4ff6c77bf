import type { VNode } from 'preact';
import { RECENT_MINUTES } from '../../../accounts/sessions.js';
import { listEvents } from '../../../events/events.js';
import { MAX_ACTIVE_KEYS } from '../../../keys/key-change.js';
import { isAccepted, hintsOf, stateOf, type KeyRecord } from '../../../keys/key-record.js';
import { readKeySummary } from '../../../keys/key-summary.js';
import { listKeysOf, MAX_LABEL, findPredecessor } from '../../../keys/keys.js';
import { readUsage, type OutcomeTotal } from '../../../usage/read-usage.js';
import { Button, Notice, UserText, isolated, RelativeTime, Time } from '../../parts/content/components.js';
import type { SiteParts } from '../../parts/context.js';
import { EventTable } from '../../parts/events.js';
import { BY_PREFIX, BY_TIME, ListSearch, Pager, readListPage, readListSearch } from '../../parts/forms/list-page.js';
import { KeyTable, KeyReference, keyPath, KeyFacts } from '../../parts/keys.js';
import { Outcomes, total } from '../../parts/usage.js';
import { failuresOf } from '../failed-requests.js';
import { FirstCall } from '../first-call.js';
import { settingsPage, type Guards, type SettingsRouter } from '../settings-page.js';
import { addExpiry, addLabel, addRevokeKey } from './change-key.js';
import { addCreateKey, addRollKey } from './new-key.js';
import { KEYS_PATH, answerRefusals, NoRoom, KEY_PATH, recordOf } from './one-key.js';

/** Adds the keys of a developer: their list, the form that creates one, the page of each and forms that change it. */
export function addKeys(router: SettingsRouter, parts: SiteParts, guards: Guards): void {
  router.use(KEYS_PATH, answerRefusals);
  addKeyList(router, parts, guards);
  addCreateKey(router, parts, guards);
  addKeyPage(router, parts, guards);
  addFirstRequest(router, parts, guards);
  addRollKey(router, parts, guards);
  addRevokeKey(router, parts, guards);
  addLabel(router, parts, guards);
  addExpiry(router, parts, guards);
}

/** A filter helps with more keys than this. */
const HANDFUL = 5;

/** Adds the list of a developer's keys: active keys, then inactive ones. */
function addKeyList(router: SettingsRouter, { db }: SiteParts, { requireSession }: Guards): void {
  router.get(KEYS_PATH, requireSession, async (ctx) => {
    const { developerId, suspendedAt, isRecent } = ctx.state.session;
    const isSuspended = suspendedAt !== null;
    const search = readListSearch(ctx, MAX_LABEL);
    if (search === undefined) return;
    const query = search === '' ? {} : { search };
    const keys = await readListPage(ctx, BY_PREFIX, (part) => listKeysOf(db, developerId, { ...part, ...query }));
    const counts = await readKeySummary(db, developerId);
    const inactive = keys.rows.filter((record) => !isAccepted(record));
    settingsPage(
      ctx,
      { title: 'Keys', tab: 'keys' },
      counts.total === 0 ? (
        <NoKeys isSuspended={isSuspended} />
      ) : (
        <div class="key-list">
          <p>
            Use one key per environment, so that you can revoke each on its own. “Last used” may be up to five minutes
            behind.
          </p>
          {!isSuspended && counts.active >= MAX_ACTIVE_KEYS && <NoRoom />}
          {!isSuspended && !isRecent && (
            <p class="muted small">
              You signed in more than {RECENT_MINUTES} minutes ago. <a href="/sign-in">Sign in again</a> to create or
              roll a key, or to change an expiry. You can still revoke keys.
            </p>
          )}
          <div class="toolbar">
            {!isSuspended && counts.active < MAX_ACTIVE_KEYS && (
              <p class="cluster">
                <Button href={`${KEYS_PATH}/new`} tone="primary" label="Create a key" />
                <span class="muted">
                  {counts.active} of {MAX_ACTIVE_KEYS} active keys{counts.rolled > 0 && `, and ${counts.rolled} rolled`}
                </span>
              </p>
            )}
            {(counts.total > HANDFUL || search !== '') && (
              <ListSearch path={KEYS_PATH} search={search} label="Filter by label or prefix" maxLength={MAX_LABEL} />
            )}
          </div>
          {keys.rows.length === 0 && search !== '' && (
            <p class="empty">
              No key has “<UserText text={search} />” in its label or prefix. <a href={KEYS_PATH}>Show all keys</a>
            </p>
          )}
          {counts.active + counts.rolled === 0 && search === '' && <p class="empty">You have no active keys</p>}
          <KeyTable caption="Active keys" rows={keys.rows.filter(isAccepted)} canRoll canRevoke={!isSuspended} />
          {inactive.length > 0 && <h2>Inactive keys</h2>}
          <KeyTable caption="Inactive keys" rows={inactive} canRevoke={false} />
          <Pager page={keys} />
        </div>
      ),
    );
  });
}

function NoKeys({ isSuspended }: { readonly isSuspended: boolean }): VNode {
  return (
    <div class="empty">
      <p>
        <strong>You have no keys yet.</strong> Every call needs one.
      </p>
      {!isSuspended && (
        <p>
          <Button href={`${KEYS_PATH}/new`} tone="primary" label="Create your first key" />
        </p>
      )}
      <p>
        <a href="/docs/guides/calling-the-api">How to call the API</a>
      </p>
    </div>
  );
}

/** Adds the page of a key. Only an active key of a developer who is not suspended can be changed. */
function addKeyPage(router: SettingsRouter, { db }: SiteParts, { requireSession }: Guards): void {
  router.get(KEY_PATH, requireSession, async (ctx) => {
    const record = await recordOf(ctx, db);
    const { prefix, label, developerId, successor, expiresAt, lastUsedAt } = record;
    const replaced = await findPredecessor(db, prefix);
    const { keys } = await readUsage(db, { developerId, keyPrefix: prefix }, '30d', { limit: 1 });
    const [usage] = keys;
    const events = await readListPage(ctx, BY_TIME, (part) =>
      listEvents(db, { developerId, keyPrefix: prefix, ...part }),
    );
    const isActive = isAccepted(record);
    const canChange = isActive && !record.isSuspended;
    settingsPage(
      ctx,
      { title: label === null ? prefix : isolated(label), tab: 'keys', trail: { path: KEYS_PATH, label: 'All keys' } },
      <>
        <KeyFacts
          record={record}
          canChange={canChange}
          more={{ Replaces: replaced !== undefined && <Predecessor record={replaced} /> }}
        />
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
            <p>None{isActive && '. Requests appear after about ten seconds'}.</p>
          ) : (
            <>
              <Outcomes counts={usage} />
              <p>
                <a href={`/settings/usage?key=${prefix}`}>Usage of this key by day</a>
                {usage.served < total(usage) && (
                  <>
                    {' · '}
                    <a href={failuresOf(prefix)}>Failed requests of this key</a>
                  </>
                )}
              </p>
            </>
          )}
        </section>
        <section>
          <h2 id="events">Events</h2>
          <EventTable events={events.rows} isOfOneKey />
          <Pager page={events} />
        </section>
      </>,
    );
  });
}

/** Adds what the script polls while it waits for the first request of a key: no content until then. */
function addFirstRequest(router: SettingsRouter, { db }: SiteParts, { requireSession }: Guards): void {
  router.get(`${KEY_PATH}/first-request.txt`, requireSession, async (ctx) => {
    const { developerId, prefix } = await recordOf(ctx, db);
    const { ways } = await readUsage(db, { developerId, keyPrefix: prefix }, '24h', { limit: 1 });
    const [request] = ways;
    ctx.status = request === undefined ? 204 : 200;
    if (request !== undefined) ctx.body = describeFirst(request);
  });
}

/** @returns what became of the first requests with a key, in a sentence */
function describeFirst({ operation, outcome }: OutcomeTotal): string {
  const what = operation === '' ? 'a request to a path that does not exist' : `a request to ${operation}`;
  return outcome === 'success' ? `Received: ${what}, successful.` : `Received: ${what}, which failed: ${outcome}.`;
}

/** The key that another one replaces, and what has become of it. */
function Predecessor({ record }: { readonly record: KeyRecord }): VNode {
  const { prefix } = record;
  const state = stateOf(record);
  const end = 'at' in state ? state.at : record.expiresAt;
  return (
    <>
      <KeyReference prefix={prefix} label={null} />{' '}
      <span class="muted">
        {PREDECESSOR_STATES[state.kind]} {end !== null && <Time at={end} />}
      </span>{' '}
      {!record.isSuspended && isAccepted(record) && (
        <a class="small" href={`${keyPath(prefix)}/revoke`} aria-label={`Revoke ${prefix}`}>
          Revoke
        </a>
      )}
    </>
  );
}

const PREDECESSOR_STATES = {
  active: 'active until',
  rolled: 'active until',
  expired: 'ended',
  revoked: 'revoked',
} as const;
