import type { Knex } from 'knex';
import { eventually } from '../eventually.js';

/** Waits until sessions of the server wait for locks. */
export function untilWaiting(what: string, db: Knex, sessions = 1): Promise<unknown> {
  return eventually(what, async () => {
    const { rows } = await db.raw<{ rows: unknown[] }>('select from pg_locks where not granted');
    return rows.length >= sessions;
  });
}
