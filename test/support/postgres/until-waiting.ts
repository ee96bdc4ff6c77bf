import type { Knex } from 'knex';
import { eventually } from '../eventually.js';

/** Waits until a session of the server waits for a lock. */
export function untilWaiting(what: string, db: Knex): Promise<unknown> {
  return eventually(what, async () => {
    const { rows } = await db.raw<{ rows: unknown[] }>('select from pg_locks where not granted');
    return rows.length > 0;
  });
}
