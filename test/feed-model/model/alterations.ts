import type { Knex } from 'knex';
import { eventually } from '../../support/eventually.js';

// Changes to the schema of a test: they delay it, or break what the feed depends on.

/** A place where the service waits until the test opens it. */
export interface Gate {
  /** Resolves when the service waits there. */
  reached(): Promise<void>;
  open(): Promise<void>;
}

/** Makes each call of the safe time's function wait before it reads anything. The function itself is the real one. */
export async function holdSafeTime(db: Knex): Promise<Gate> {
  await db.raw(`
    alter function public.catalog_quiet_clock() rename to real_quiet_clock;
    create function public.catalog_quiet_clock() returns timestamptz language plpgsql volatile as $$
    begin
      perform pg_advisory_xact_lock_shared(1, 2);
      return public.real_quiet_clock();
    end
    $$;
  `);
  const holder = await db.transaction();
  await holder.raw('select pg_advisory_xact_lock(1, 2)');
  return {
    async reached() {
      await eventually('the service waits for the safe time', async () => {
        const waiting = await db('pg_locks').where({ locktype: 'advisory', classid: 1, objid: 2, granted: false });
        return waiting.length > 0;
      });
    },
    open: () => holder.commit().then(),
  };
}

/** Drops the lock that makes writers take turns. */
export async function dropLock(db: Knex): Promise<void> {
  await db.raw(`
    drop trigger a_take_writer_lock on public.titles;
    -- Writers now deadlock: later connections detect it soon.
    do $$
    begin
      execute format('alter database %I set deadlock_timeout = 50', current_database());
    end
    $$;
  `);
}

/** Stamps rows with the time at which the writer's transaction began. */
export async function stampWithTransactionStart(db: Knex): Promise<void> {
  await replaceStamp(db, 'now()');
}

/** Stamps rows with the clock alone, without regard to the last stamp. */
export async function stampWithClockAlone(db: Knex): Promise<void> {
  await replaceStamp(db, 'clock_timestamp()');
}

/** Replaces the stamp, and keeps the rest of the real function and its settings. */
async function replaceStamp(db: Knex, stamp: string): Promise<void> {
  await db.raw(`
    -- The schema would refuse a tie before a follower could receive it.
    alter table public.titles drop constraint titles_updated_at_unique;
    create index on public.titles (updated_at);
    -- The clock that a test may have installed counts.
    create function public.broken_stamp() returns trigger language plpgsql set search_path = model, pg_catalog as $$
    begin
      if tg_op = 'UPDATE' then
        new.created_at := old.created_at;
        new.updated_at := old.updated_at;
        if new is not distinct from old then
          return null;
        end if;
      end if;
      new.updated_at := ${stamp};
      if tg_op = 'INSERT' then
        new.created_at := new.updated_at;
      end if;
      return new;
    end
    $$;
    drop trigger stamp_inserted on public.titles;
    drop trigger stamp_updated on public.titles;
    create trigger stamp before insert or update on public.titles for each row execute function public.broken_stamp();
  `);
}
