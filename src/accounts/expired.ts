import type { Knex } from 'knex';
import { removeRows } from '../platform/postgres/rows.js';
import { ABSOLUTE_DAYS, IDLE_HOURS } from './sessions.js';

/** The condition for expired rows, by table. */
const EXPIRED = {
  sign_in_links: 'expires_at < now()',
  sign_ups: 'expires_at < now()',
  spent_sign_ins: 'expires_at < now()',
  passkey_challenges: 'expires_at < now()',
  sessions: `last_seen_at < now() - interval '${IDLE_HOURS} hours' or signed_in_at < now() - interval '${ABSOLUTE_DAYS} days'`,
} as const;

/**
 * Removes links, sessions, sign-ups and challenges that have expired. Reads already ignore them; this frees space.
 *
 * @param most - the most rows of each table
 * @returns whether there may be more
 * @throws the database's error
 */
export async function removeExpired(db: Knex, most: number): Promise<boolean> {
  let isMore = false;
  for (const [table, condition] of Object.entries(EXPIRED)) {
    if (await removeRows(db, table, condition, most)) isMore = true;
  }
  return isMore;
}
