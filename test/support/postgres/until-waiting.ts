import type { Knex } from 'knex';
import { eventually } from '../eventually.js';

/** Waits until sessions of the database wait for locks. */
export function untilWaiting(what: string, db: Knex, sessions = 1): Promise<unknown> {
  return eventually(what, async () => {
    const { rows } = await db.raw<{ rows: unknown[] }>(
      "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
    );
    return rows.length >= sessions;
  });
}
