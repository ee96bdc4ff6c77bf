import type { Knex } from 'knex';

/** The transactions that write to the catalogue at a moment. */
export interface Writers {
  /** Whether one holds the writers' lock. */
  readonly isActive: boolean;
  /** How many wait for it. */
  readonly waiting: number;
}

/** Reads who holds the lock that `catalog_take_writer_lock()` takes, and who waits for it. */
export async function readWriters(db: Knex): Promise<Writers> {
  const { rows } = await db.raw<{ rows: Writers[] }>(
    `select coalesce(bool_or(granted and mode = 'ExclusiveLock'), false) as "isActive",
            count(*) filter (where not granted)::integer as waiting
       from pg_locks
      where locktype = 'advisory' and classid = x'66656564'::integer::oid and objid = 1 and objsubid = 2
        and database = (select oid from pg_database where datname = current_database())`,
  );
  return rows[0] ?? { isActive: false, waiting: 0 };
}
