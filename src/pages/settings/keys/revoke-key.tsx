import { stateOf } from '../../../keys/key-record.js';
import { findPredecessor } from '../../../keys/keys.js';
import { revokeKey } from '../../../keys/revoke.js';
import type { SiteParts } from '../../parts/context.js';
import { redirectAndConfirm } from '../../parts/frame/notices.js';
import { keyPath } from '../../parts/keys/key-name.js';
import { RevokeForm } from '../../parts/keys/revoke-form.js';
import type { Guards, SettingsRouter } from '../guards.js';
import { formPage, KEY_PATH, prefixOf, recordOf } from './one-key.js';

/** Adds the form that revokes a key. */
export function addRevokeKey(router: SettingsRouter, { db, beginChange }: SiteParts, { notSuspended }: Guards): void {
  router.get(`${KEY_PATH}/revoke`, notSuspended, async (ctx) => {
    const record = await recordOf(ctx, db);
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

  router.post(`${KEY_PATH}/revoke`, notSuspended, async (ctx) => {
    const prefix = prefixOf(ctx);
    const { developerId } = ctx.state.session;
    const endChange = beginChange();
    const { wasRevoked } = await revokeKey(db, prefix, { kind: 'developer', developerId });
    const propagation = await endChange(!wasRevoked);
    if (wasRevoked) redirectAndConfirm(ctx, keyPath(prefix), 'already_revoked');
    else redirectAndConfirm(ctx, keyPath(prefix), 'revoked', propagation);
  });
}
