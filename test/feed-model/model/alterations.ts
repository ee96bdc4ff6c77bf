import type { Knex } from 'knex';
import { eventually } from '../../support/eventually.js';

// What the tests do to a copy of the schema: they hold it up, and spoil what the feed rests on.

/** A place where the service is held up until the test lets it go on. */
export interface Gate {
  /** Resolves when it waits there. */
  reached(): Promise<void>;
  open(): Promise<void>;
}

/** Holds up each call of the quiet clock before it looks at anything. The code of the function is the real one. */
export async function holdQuietClock(db: Knex): Promise<Gate> {
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
      await eventually('the service waits for the quiet clock', async () => {
        const waiting = await db('pg_locks').where({ locktype: 'advisory', classid: 1, objid: 2, granted: false });
        return waiting.length > 0;
      });
    },
    open: () => holder.commit().then(),
  };
}

/** Without the lock that makes writers take turns. */
export async function dropLock(db: Knex): Promise<void> {
  await db.raw(`
    drop trigger a_take_writer_lock on public.titles;
    -- Writers now deadlock: let them not sit it out. For connections to come.
    do $$
    begin
      execute format('alter database %I set deadlock_timeout = 50', current_database());
    end
    $$;
  `);
}

/** Stamps that are the time at which the writer's transaction began. */
export async function stampWithTransactionStart(db: Knex): Promise<void> {
  await replaceStamp(db, 'now()');
}

/** Stamps that are the clock alone, without the last stamp. */
export async function stampWithClockAlone(db: Knex): Promise<void> {
  await replaceStamp(db, 'clock_timestamp()');
}

/** Keeps what the real function does beside the stamp itself, and its settings. */
async function replaceStamp(db: Knex, stamp: string): Promise<void> {
  await db.raw(`
    -- The schema would refuse a tie before a follower could be led astray by it.
    alter table public.titles drop constraint titles_updated_at_unique;
    create index on public.titles (updated_at);
    create function public.spoilt_stamp() returns trigger language plpgsql as $$
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
    do $$
    begin
      if to_regnamespace('model') is not null then
        alter function public.spoilt_stamp() set search_path = model, pg_catalog;
      end if;
    end
    $$;
    drop trigger stamp_inserted on public.titles;
    drop trigger stamp_updated on public.titles;
    create trigger stamp before insert or update on public.titles for each row execute function public.spoilt_stamp();
  `);
}
