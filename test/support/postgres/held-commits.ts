import type { Knex } from 'knex';

/** Commits that are held up until they are released. */
export interface HeldCommits {
  /** Whether a commit is held now: the change is made, and nobody else sees it yet. */
  isWaitedFor(): Promise<boolean>;
  /** Lets these commits and later ones continue. */
  release(): Promise<void>;
}

/** Any number that the service does not use for an advisory lock. */
const LOCK = 8_151_623;

/**
 * Holds every commit of a program that has changed rows of some tables, at its very end.
 *
 * @param program - a pattern of the name that its connections have
 */
export async function holdCommits(
  db: Knex,
  tables: string | readonly string[],
  program = 'catalog command',
): Promise<HeldCommits> {
  const holder = await db.transaction();
  await holder.raw('select pg_advisory_xact_lock(?)', [LOCK]);
  await db.raw(`
    create function hold_commit() returns trigger language plpgsql as $$
    begin
      if current_setting('application_name') ~ '^${program}$' then
        perform pg_catalog.pg_advisory_xact_lock(${LOCK});
      end if;
      return null;
    end
    $$;
  `);
  for (const table of [tables].flat()) {
    await db.raw(`create constraint trigger hold_commit after insert or update on ${table}
      deferrable initially deferred for each row execute function hold_commit()`);
  }
  return {
    async isWaitedFor() {
      const waiting = await db('pg_locks').where({ locktype: 'advisory', granted: false, objid: LOCK });
      return waiting.length > 0;
    },
    async release() {
      if (holder.isCompleted()) return;
      await holder.rollback();
      await db.raw('drop function hold_commit cascade');
    },
  };
}
