import type { Knex } from 'knex';
import { removeRows } from '../platform/postgres/rows.js';

/** A notice that is to be sent. */
export interface Notice {
  readonly id: string;
  readonly type: string;
  /** In RFC 3339 and UTC. */
  readonly occurredAt: string;
  readonly data: object;
}

/** A notice that this process sends, with the number of this attempt. */
export interface ClaimedNotice extends Notice {
  readonly attempt: number;
}

/** Bounds of the pause between two attempts, in seconds. It doubles with each attempt. */
const PAUSE_SECONDS = { first: 30, longest: 3_600 } as const;

/** How long a notice is sent, in days. */
const SENT_DAYS = 3;

/** How long notices are kept, in days: longer than the first notice of a key's expiry stands before it. */
const KEPT_DAYS = 35;

const IS_PENDING = 'delivered_at is null and given_up_at is null';

/** True for a notice that is not sent any more. */
const IS_OVER = `(created_at < now() - interval '${SENT_DAYS} days')`;

/**
 * Takes the next notice that is due. No other process sends it before the pause to the next attempt has passed, which
 * is longer than an attempt takes.
 *
 * @returns undefined if none is due
 */
export async function claimNotice(db: Knex): Promise<ClaimedNotice | undefined> {
  const { first, longest } = PAUSE_SECONDS;
  const { rows } = await db.raw<{ rows: ClaimedNotice[] }>(
    `update notices
        set attempts = attempts + 1,
            next_attempt_at = now() + make_interval(secs => least(${longest}, ${first} * 2 ^ least(attempts, 20)))
      where id = (
        select id from notices where ${IS_PENDING} and not ${IS_OVER} and next_attempt_at <= now()
         order by next_attempt_at limit 1 for update skip locked)
      returning id, type, occurred_at as "occurredAt", data, attempts as attempt`,
  );
  return rows[0];
}

/** Notes that the receiver has accepted a notice. */
export async function markDelivered(db: Knex, { id }: Notice): Promise<void> {
  await db.raw('update notices set delivered_at = now() where id = ?', [id]);
}

/**
 * Gives up notices that could not be delivered for {@link SENT_DAYS}.
 *
 * @returns the notices, with the number of attempts so far
 */
export async function giveUpNotices(db: Knex): Promise<readonly ClaimedNotice[]> {
  const { rows } = await db.raw<{ rows: ClaimedNotice[] }>(
    `update notices set given_up_at = now()
      where ${IS_PENDING} and ${IS_OVER}
      returning id, type, occurred_at as "occurredAt", data, attempts as attempt`,
  );
  return rows;
}

/** @returns how many notices are not delivered yet */
export async function countPendingNotices(db: Knex): Promise<number> {
  const { rows } = await db.raw<{ rows: { count: number }[] }>(`select count(*) from notices where ${IS_PENDING}`);
  return rows[0]?.count ?? 0;
}

/** Removes notices older than {@link KEPT_DAYS}. @returns whether there may be more */
export function removeOldNotices(db: Knex, most: number): Promise<boolean> {
  return removeRows(db, 'notices', `created_at < now() - interval '${KEPT_DAYS} days'`, most);
}
