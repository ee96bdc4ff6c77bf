import type { Knex } from 'knex';

/** A clock of the database that a test sets. */
export interface ModelClock {
  /** Sets its difference from the real clock, in microseconds. Applies at once, also to running statements. */
  setOffset(micros: bigint): Promise<void>;
}

/**
 * Gives the feed's functions a clock that the test sets. They call clock_timestamp() without its schema, so a changed
 * search path suffices to find the test's function first; the functions themselves stay the real ones. A sequence keeps
 * the offset, because all sessions see its value at once, also within a transaction.
 *
 * @param precision - the tick of the clock, as for date_trunc
 */
export async function installClock(
  db: Knex,
  precision: 'microseconds' | 'second' = 'microseconds',
): Promise<ModelClock> {
  await db.raw(`
    create schema model;
    create sequence model.clock_offset as bigint minvalue -4000000000000000 maxvalue 4000000000000000 start 0;
    create function model.clock_timestamp() returns timestamptz language sql volatile as $$
      select date_trunc('${precision}', pg_catalog.clock_timestamp() + last_value * interval '1 microsecond')
        from model.clock_offset
    $$;
    alter function public.titles_follow_clock() set search_path = model, pg_catalog, pg_temp;
    alter function public.catalog_quiet_clock() set search_path = model, pg_catalog;
  `);
  return {
    setOffset: (micros) => db.raw("select setval('model.clock_offset', ?)", [String(micros)]).then(),
  };
}
