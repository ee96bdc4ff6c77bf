import type { Knex } from 'knex';

/** The database's clock as a test sets it. */
export interface ModelClock {
  /** Sets it off from the real one, in microseconds. Holds at once, also within statements that run. */
  setOffset(micros: bigint): Promise<void>;
  /** Moves it. */
  advance(micros: bigint): Promise<void>;
}

/**
 * Gives the feed's functions a clock of the test's. They call clock_timestamp() without naming its schema. So only their
 * search path changes: it finds the test's function before PostgreSQL's. The code that runs is the real one. A sequence
 * keeps the offset, because all sessions see its value at once, also within a transaction.
 *
 * @param precision - what the clock ticks in, as date_trunc has it
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
  // One move after the other: two at the same time would start from the same place, and one be lost.
  let moved: Promise<unknown> = Promise.resolve();
  return {
    setOffset: (micros) => db.raw("select setval('model.clock_offset', ?)", [String(micros)]).then(),
    async advance(micros) {
      moved = moved.then(() =>
        db.raw("select setval('model.clock_offset', last_value + ?) from model.clock_offset", [String(micros)]),
      );
      await moved;
    },
  };
}
