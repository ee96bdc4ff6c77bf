import { MAX_ACTIVE_KEYS } from '../../../keys/key-change.js';
import { readKeySummary } from '../../../keys/key-summary.js';
import { createKey, listKeysOf, MAX_LABEL } from '../../../keys/keys.js';
import type { SiteParts } from '../../parts/context.js';
import { queryOf } from '../../parts/web/page-address.js';
import type { Guards, SettingsRouter } from '../guards.js';
import { readListPage, readListSearch } from '../../parts/forms/list-page.js';
import { settingsPage } from '../settings-page.js';
import { keyPath } from '../../parts/keys/key-name.js';
import { KeyList, KEYS_PATH, NoRoom } from './key-list.js';
import { findDuplicate } from './label-field.js';
import { newKeyValues, NewKeyForm, NEW_KEY_PATH, readNewKey } from './new-key.js';
import { addOneKey } from './one-key.js';
import { BackToKeys, explainRefusals } from './refusals.js';
import { ShownKey } from './shown-key.js';

/** Adds the keys of a developer: their list, the form that creates one, and the pages of each. */
export function addKeys(router: SettingsRouter, parts: SiteParts, guards: Guards): void {
  const { db, site, beginChange } = parts;
  const { requireSession, requireRecentSignIn } = guards;

  router.get(KEYS_PATH, requireSession, async (ctx) => {
    const { developerId, suspendedAt, isRecent } = ctx.state.session;
    const search = readListSearch(ctx, KEYS_PATH, MAX_LABEL);
    if (search === undefined) return;
    const query = search === '' ? {} : { search };
    const list = (
      <KeyList
        keys={await readListPage(ctx, (slice) => listKeysOf(db, developerId, { ...slice, ...query }))}
        counts={await readKeySummary(db, developerId)}
        search={search}
        isSuspended={suspendedAt !== null}
        isRecent={isRecent}
      />
    );
    settingsPage(ctx, { title: 'Keys', tab: 'keys' }, list);
  });

  const newKeyPage = { title: 'Create a key', tab: 'keys' } as const;

  router.get(NEW_KEY_PATH, requireRecentSignIn, async (ctx) => {
    const { active } = await readKeySummary(db, ctx.state.session.developerId);
    const body =
      active < MAX_ACTIVE_KEYS ? (
        <NewKeyForm submission={newKeyValues(queryOf(ctx))} />
      ) : (
        <>
          <NoRoom />
          <BackToKeys />
        </>
      );
    settingsPage(ctx, newKeyPage, body);
  });

  router.post(NEW_KEY_PATH, requireRecentSignIn, explainRefusals, async (ctx) => {
    const { developerId } = ctx.state.session;
    const { submission, details } = readNewKey(ctx);
    if (details === undefined) {
      settingsPage(ctx, { ...newKeyPage, status: 422 }, <NewKeyForm submission={submission} />);
      return;
    }
    const duplicate = await findDuplicate(db, developerId, submission.values, details);
    if (duplicate !== undefined) {
      settingsPage(ctx, { ...newKeyPage, status: 409 }, <NewKeyForm submission={submission} duplicate={duplicate} />);
      return;
    }
    const { formHash, ...fields } = details;
    const endChange = beginChange();
    const created = await createKey(db, { ...fields, developerId }, { kind: 'developer', developerId, formHash });
    await endChange(false);
    const body = <ShownKey created={created} baseUrl={site.publicUrl()} />;
    settingsPage(ctx, { title: 'Key created', tab: 'keys', address: keyPath(created.prefix) }, body);
  });

  addOneKey(router, parts, guards);
}
