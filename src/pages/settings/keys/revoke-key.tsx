import { stateOf } from '../../../keys/key-record.js';
import { findPredecessor } from '../../../keys/keys.js';
import { revokeKey } from '../../../keys/revoke.js';
import type { SiteParts } from '../../parts/context.js';
import { redirectAndConfirm } from '../../parts/frame/notices.js';
import { keyPath, RevokeForm } from '../../parts/keys.js';
import type { Guards, SettingsRouter } from '../settings-page.js';
import { formPage, KEY_PATH, loadKey, prefixOf } from './one-key.js';

/** Adds the form that revokes a key. */
export function addRevokeKey(router: SettingsRouter, { db, changeCallers }: SiteParts, { notSuspended }: Guards): void {
  const path = `${KEY_PATH}/revoke`;

  router.get(path, notSuspended, async (ctx) => {
    const record = await loadKey(db, ctx);
    const { prefix } = record;
    const { kind } = stateOf(record);
    if (kind === 'revoked' || kind === 'expired') {
      redirectAndConfirm(ctx, keyPath(prefix), kind === 'revoked' ? 'already_revoked' : 'already_ended');
      return;
    }
    const predecessor = await findPredecessor(db, prefix);
    const replaced = predecessor && stateOf(predecessor).kind === 'rolled' ? predecessor : undefined;
    formPage(ctx, record, `Revoke ${prefix}`, <RevokeForm record={record} replaced={replaced} />);
  });

  router.post(path, notSuspended, async (ctx) => {
    const prefix = prefixOf(ctx);
    const { developerId } = ctx.state.session;
    const { wasRevoked } = await changeCallers(
      () => revokeKey(db, prefix, { kind: 'developer', developerId }),
      () => [developerId],
    );
    redirectAndConfirm(ctx, keyPath(prefix), wasRevoked ? 'already_revoked' : 'revoked');
  });
}
