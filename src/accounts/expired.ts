import type { Knex } from 'knex';
import { ABSOLUTE_DAYS, IDLE_HOURS } from './sessions.js';

/** Rows that one statement removes at most, so that it stays short beside other work. */
const BATCH = 1_000;

/** Statements of one run and table at most; the next run goes on. */
const BATCHES_PER_RUN = 20;

/** What has expired, by table. */
const EXPIRED = {
  sign_in_links: 'expires_at < now()',
  sign_ups: 'expires_at < now()',
  sessions: `last_seen_at < now() - interval '${IDLE_HOURS} hours' or signed_in_at < now() - interval '${ABSOLUTE_DAYS} days'`,
} as const;

/**
 * Removes links, sessions and sign-ups that have expired. They are void without that. Several servers may do so at the same
 * time: each skips the rows that another one removes.
 *
 * @returns how many rows were removed
 * @throws the database's error
 */
export async function removeExpired(db: Knex): Promise<number> {
  let removed = 0;
  for (const [table, condition] of Object.entries(EXPIRED)) {
    for (let batch = 0; batch < BATCHES_PER_RUN; batch += 1) {
      const { rowCount } = await db.raw<{ rowCount: number }>(
        `delete from ${table} where ctid = any(array(
           select ctid from ${table} where ${condition} limit ${BATCH} for update skip locked))`,
      );
      removed += rowCount;
      if (rowCount < BATCH) break;
    }
  }
  return removed;
}
