import type { Knex } from 'knex';
import { expiresAt, type Expiry } from './expiry.js';
import { changeKeys, createAnother, KeyRefused, lockKey, OPERATOR, type KeyActor } from './key-change.js';
import { IS_ACTIVE, keyFields, stateOf, type KeyRecord } from './key-record.js';
import { requirePlan } from '../limits/plans.js';

/** How many labels and expiries a developer may change within 24 hours. Every change is recorded as an event. */
export const MAX_EDITS_PER_DAY = 200;

/** A key before and after a change, which may have made no difference. */
export interface EditedKey {
  readonly before: KeyRecord;
  readonly after: KeyRecord;
}

/** A column and its new value. */
type Change = readonly [column: 'label' | 'expires_at' | 'plan_id', value: string | Knex.Raw | null];

/**
 * Gives an active key another label.
 *
 * @param label - null removes it
 * @throws KeyRefused when no key has this prefix, or when it is revoked or expired
 * @throws KeyRefused when the developer who changes it is suspended or does not own it, or has made
 *   {@link MAX_EDITS_PER_DAY}
 */
export function setKeyLabel(
  db: Knex,
  prefix: string,
  label: string | null,
  by: KeyActor = OPERATOR,
): Promise<EditedKey> {
  return editKey(db, prefix, by, () => ['label', label]);
}

/**
 * Changes when an active key expires, to an earlier or a later time. A time in the past ends the key now. A key that
 * has expired stays expired.
 *
 * @param expires - null for never, which a key that was rolled cannot have
 * @throws KeyRefused as {@link setKeyLabel}, and when a key that was rolled would never expire
 */
export function setKeyExpiry(
  db: Knex,
  prefix: string,
  expires: Expiry | null,
  by: KeyActor = OPERATOR,
): Promise<EditedKey> {
  return editKey(db, prefix, by, ({ successor }, transaction) => {
    if (expires === null && successor !== null) {
      throw new KeyRefused('rolled', `Key ${prefix} was replaced by ${successor.prefix}, so it must expire.`, {
        advice: 'Set a time, or revoke it.',
        otherPrefix: successor.prefix,
      });
    }
    const time = expiresAt(transaction, expires ?? undefined);
    return ['expires_at', time && transaction.raw('greatest(clock_timestamp(), ?)', [time])];
  });
}

/**
 * Moves an active key to another plan, whose limits apply from the next request.
 *
 * @throws OperatorError when there is no such plan
 * @throws KeyRefused when no key has this prefix, or when it is revoked or expired
 */
export function setKeyPlan(db: Knex, prefix: string, planId: string): Promise<EditedKey> {
  return editKey(db, prefix, OPERATOR, async (_, transaction) => {
    await requirePlan(transaction, planId);
    return ['plan_id', planId];
  });
}

/**
 * Moves all active keys of a developer to another plan, whose limits apply from the next request.
 *
 * @returns how many were on another plan
 * @throws OperatorError when there is no such plan
 */
export function setPlanOfKeys(db: Knex, developerId: number, planId: string): Promise<number> {
  return changeKeys(db, OPERATOR, async (transaction) => {
    await requirePlan(transaction, planId);
    const keys = transaction('api_keys')
      .where({ developer_id: developerId })
      .whereNot({ plan_id: planId })
      .whereRaw(IS_ACTIVE);
    // In the order in which servers lock keys to write their last use; any other could deadlock with them.
    await keys.clone().orderBy('id').forNoKeyUpdate().select('id');
    return keys.update({ plan_id: planId });
  });
}

/** Changes one column. @param changeOf - its name and its new value. Nothing is written if it has it already. */
function editKey(
  db: Knex,
  prefix: string,
  by: KeyActor,
  changeOf: (before: KeyRecord, transaction: Knex.Transaction) => Change | Promise<Change>,
): Promise<EditedKey> {
  return changeKeys(db, by, async (transaction) => {
    const before = await lockKey(transaction, prefix, by);
    requireAccepted(before);
    await requireEditsLeft(transaction, by);
    const [column, value] = await changeOf(before, transaction);
    const [after = before] = await transaction('api_keys')
      .where({ prefix })
      .whereRaw('?? is distinct from ?', [column, value])
      .update(column, value)
      .returning<KeyRecord[]>(keyFields(transaction));
    return { before, after };
  });
}

/** @throws KeyRefused when a developer has made {@link MAX_EDITS_PER_DAY} */
async function requireEditsLeft(transaction: Knex.Transaction, by: KeyActor): Promise<void> {
  if (by.kind !== 'developer') return;
  const { developerId } = by;
  const edits = transaction('events')
    .where({ developer_id: developerId, actor: 'developer' })
    .whereIn('kind', ['label_changed', 'expiry_changed'])
    .whereRaw("at > now() - interval '24 hours'");
  // The rows are few: each edit adds one, up to the limit.
  if ((await edits.select('id')).length < MAX_EDITS_PER_DAY) return;
  throw new KeyRefused(
    'too_many_edits',
    `Developer ${developerId} has made ${MAX_EDITS_PER_DAY} edits within 24 hours.`,
  );
}

/** @throws KeyRefused when the key is revoked or expired */
export function requireAccepted(record: KeyRecord): void {
  const { kind } = stateOf(record);
  if (kind === 'active' || kind === 'rolled') return;
  const why = kind === 'revoked' ? 'is revoked' : 'has expired';
  const advice = createAnother(record);
  throw new KeyRefused(kind, `Key ${record.prefix} ${why} and cannot be changed.`, { advice });
}
