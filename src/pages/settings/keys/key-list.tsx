import type { Knex } from 'knex';
import type { VNode } from 'preact';
import { RECENT_MINUTES } from '../../../accounts/sessions.js';
import { MAX_ACTIVE_KEYS } from '../../../keys/key-change.js';
import { isAccepted } from '../../../keys/key-record.js';
import { readKeySummary } from '../../../keys/key-summary.js';
import { listKeysOf, MAX_LABEL } from '../../../keys/keys.js';
import { Button, UserText } from '../../parts/content/components.js';
import type { SiteParts } from '../../parts/context.js';
import { BY_PREFIX, ListSearch, Pager, readListPage, readListSearch } from '../../parts/forms/list-page.js';
import { KeyTable } from '../../parts/keys.js';
import { readTogether } from '../../parts/read-together.js';
import { settingsPage, type Guards, type SettingsContext, type SettingsRouter } from '../settings-page.js';
import { KEYS_PATH, NoRoom } from './one-key.js';

/** A filter helps with more keys than this. */
const HANDFUL = 5;

type KeyList = Awaited<ReturnType<typeof loadKeyList>>;

/** The keys of a developer, with the acts that the reader may do. @param search - empty for all keys */
async function loadKeyList(db: Knex, ctx: SettingsContext, search: string) {
  const { developerId, suspendedAt, isRecent } = ctx.state.session;
  const query = search === '' ? {} : { search };
  const read = await readTogether({
    keys: () => readListPage(ctx, BY_PREFIX, (part) => listKeysOf(db, developerId, { ...part, ...query })),
    counts: () => readKeySummary(db, developerId),
  });
  return { isSuspended: suspendedAt !== null, isRecent, search, ...read };
}

/** Adds the list of a developer's keys: active keys, then inactive ones. */
export function addKeyList(router: SettingsRouter, { db }: SiteParts, { requireSession }: Guards): void {
  router.get(KEYS_PATH, requireSession, async (ctx) => {
    const search = readListSearch(ctx, MAX_LABEL);
    if (search === undefined) return;
    settingsPage(ctx, { title: 'Keys', tab: 'keys' }, <KeyListPage {...await loadKeyList(db, ctx, search)} />);
  });
}

function KeyListPage({ isSuspended, isRecent, search, counts, keys }: KeyList): VNode {
  const inactive = keys.rows.filter((record) => !isAccepted(record));
  return (
    <div class="key-list">
      <p>
        Use one key per environment, so you can revoke one without breaking the others. “Last used” may be up to five
        minutes behind.
      </p>
      {!isSuspended && counts.active >= MAX_ACTIVE_KEYS && <NoRoom />}
      {!isSuspended && !isRecent && (
        <p class="muted small">
          You signed in more than {RECENT_MINUTES} minutes ago. <a href="/sign-in">Sign in again</a> to create or roll a
          key, or to change an expiry. You can still revoke keys.
        </p>
      )}
      <div class="toolbar">
        {!isSuspended && counts.active < MAX_ACTIVE_KEYS && (
          <p class="cluster">
            <Button href={`${KEYS_PATH}/new`} tone="primary" label="Create a key" />
            <span class="muted">
              {counts.active} of {MAX_ACTIVE_KEYS} keys in use
              {counts.rolled > 0 && ` (${counts.rolled} more being rolled)`}
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
      {counts.active + counts.rolled === 0 && search === '' && (
        <p class="empty">You have no active keys. Every call needs one.</p>
      )}
      <KeyTable caption="Active keys" rows={keys.rows.filter(isAccepted)} canRoll canRevoke={!isSuspended} />
      {inactive.length > 0 && <h2>Inactive keys</h2>}
      <KeyTable caption="Inactive keys" rows={inactive} canRevoke={false} />
      <Pager page={keys} />
    </div>
  );
}
