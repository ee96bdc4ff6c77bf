-- The catalogue: titles, people and curated collections, and the feed of changes to titles.

-- The one clock: the last stamp given, in microseconds since 1970. It is a sequence because a sequence keeps its
-- value when a transaction rolls back, so no stamp is given twice.
--
-- A stamp never ends in 0: in seconds, it always has six decimals. Many languages print a number with 14 or 15
-- digits, which leaves four or five decimals, often rounded up. The service recognises such a position by its last
-- digit and reads from a little earlier. When the sequence reaches a stamp that ends in 0, another one is drawn.
create sequence public.titles_last_stamp as bigint minvalue 0 start 0;

create table public.titles (
  svc_id text collate "C" primary key
    constraint titles_svc_id_format check (octet_length(svc_id) between 1 and 64 and svc_id !~ '[^A-Za-z0-9_-]'),
  media_type text collate "C" not null
    constraint titles_media_type_known check (media_type in ('movie', 'series')),
  title text not null
    constraint titles_title_length check (char_length(title) between 1 and 1000),
  has_bundles boolean not null default false,
  available_in_library boolean not null default false,
  -- Both are the row's stamp on insertion, whatever a writer supplies: see the triggers "stamp_inserted" and
  -- "stamp_updated". The first default draws the stamp, the second repeats it. Whole microseconds stay below 2^53
  -- until the year 2255, so the products are exact.
  created_at timestamptz not null default (
    timestamptz 'epoch'
      + case nextval('public.titles_last_stamp') % 10
          when 0 then nextval('public.titles_last_stamp')
          else currval('public.titles_last_stamp')
        end * interval '1 microsecond'
  ),
  updated_at timestamptz not null
    default (timestamptz 'epoch' + currval('public.titles_last_stamp') * interval '1 microsecond')
    -- The position in the feed. It is unique, so "after this position" can neither repeat an entry nor lose one.
    constraint titles_updated_at_unique unique
);

create table public.people (
  svc_id text collate "C" primary key
    constraint people_svc_id_format check (svc_id ~ '^[A-Za-z0-9_-]+$' and octet_length(svc_id) <= 64),
  name text not null
    constraint people_name_length check (char_length(name) between 1 and 1000)
);

create table public.collections (
  svc_id text collate "C" primary key
    constraint collections_svc_id_format check (svc_id ~ '^[A-Za-z0-9_-]+$' and octet_length(svc_id) <= 64),
  name text not null
    constraint collections_name_length check (char_length(name) between 1 and 1000)
);

-- The feed start. A database that is restored from a backup, or that takes over without the last commits of its
-- predecessor, lacks entries that mirrors have, and no feed can announce that. "catalog feed restart" therefore sets a
-- start after every position given before, and moves titles_last_stamp up to it, so every later entry lies after it.
-- The service refuses earlier positions, in the statement that reads the page. A mirror then takes a fresh copy.
create table public.catalog_feed (
  singleton boolean primary key default true constraint catalog_feed_singleton check (singleton),
  -- Whole seconds, so that the position of a client that drops the decimals does not fall before the start.
  feed_start timestamptz not null default 'epoch'
    constraint catalog_feed_start_whole check (feed_start = date_trunc('second', feed_start))
);

insert into public.catalog_feed default values;

-- The one lock. Neither timestamps nor sequences follow commit order, so a poller that orders by them misses rows
-- that commit late. All writers of the catalogue therefore take one lock and keep it until they have committed. The
-- trigger runs before each statement, so this lock comes before any row lock, and writers cannot deadlock over the
-- two. The key of the lock is 'feed' in ASCII, and 1. An application's lock on a single bigint cannot collide with a
-- pair of integers.
create function public.catalog_lock_writers() returns void language sql volatile
set search_path = pg_catalog, pg_temp as $$
  select pg_advisory_xact_lock(x'66656564'::integer, 1)
$$;

-- Writers may not call catalog_lock_writers(), so the trigger takes the lock itself.
create function public.catalog_take_writer_lock() returns trigger language plpgsql
set search_path = pg_catalog, pg_temp as $$
begin
  perform pg_advisory_xact_lock(x'66656564'::integer, 1);
  -- Mirrors may have an entry as soon as it is committed, so no crash may undo the commit. Any role may turn this off.
  if current_setting('synchronous_commit') not in ('on', 'remote_apply') then
    perform set_config('synchronous_commit', 'on', true);
  end if;
  return null;
end
$$;

create trigger a_take_writer_lock before insert or update on public.titles
  for each statement execute function public.catalog_take_writer_lock();
create trigger a_take_writer_lock before insert or update or delete or truncate on public.people
  for each statement execute function public.catalog_take_writer_lock();
create trigger a_take_writer_lock before insert or update or delete or truncate on public.collections
  for each statement execute function public.catalog_take_writer_lock();

-- When a statement begins, the clock's sequence moves up to the time of day, and the statement's rows take the
-- microseconds that follow. This happens after the lock is taken, because triggers fire in the order of their names.
-- A stamp is therefore later than every earlier one, and later than the moment at which its statement got the lock,
-- even if the time of day stands still or steps back. Doing this for each row would double the cost of a row. The
-- function runs as its owner, so a role that may write titles needs no right to set the clock.
--
-- The sequence moves to a number that ends in 0, which is no stamp: the trigger below tells it from one that was drawn.
create function public.titles_follow_clock() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
declare
  clock bigint := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
begin
  perform setval('public.titles_last_stamp', (greatest(clock, last_value) + 9) / 10 * 10) from public.titles_last_stamp;
  return null;
end
$$;

create trigger b_follow_clock before insert or update on public.titles
  for each statement execute function public.titles_follow_clock();

create function public.titles_stamp_inserted() returns trigger language plpgsql
set search_path = pg_catalog, pg_temp as $$
begin
  new.created_at := timestamptz 'epoch'
    + case nextval('public.titles_last_stamp') % 10
        when 0 then nextval('public.titles_last_stamp')
        else currval('public.titles_last_stamp')
      end * interval '1 microsecond';
  new.updated_at := new.created_at;
  return new;
end
$$;

-- Usually the defaults have drawn the stamp already, which is faster than calling a function for each row; any other
-- value is replaced, that of the sequence at the start of the statement too. The expression is inline because a
-- function would be parsed and planned anew for each statement.
create trigger stamp_inserted before insert on public.titles
  for each row
  when (
    currval('public.titles_last_stamp') % 10 = 0
    or new.updated_at is distinct from
      timestamptz 'epoch' + currval('public.titles_last_stamp') * interval '1 microsecond'
    or new.created_at is distinct from new.updated_at
  )
  execute function public.titles_stamp_inserted();

create function public.titles_stamp_updated() returns trigger language plpgsql
set search_path = pg_catalog, pg_temp as $$
begin
  if new.svc_id <> old.svc_id then
    raise exception 'svc_id of a title cannot change (% to %)', old.svc_id, new.svc_id
      using errcode = 'integrity_constraint_violation',
            hint = 'Mirrors know a title by its svc_id. Insert a new title instead.';
  end if;
  new.created_at := old.created_at;
  new.updated_at := old.updated_at;
  if new is not distinct from old then
    return null; -- a row that an update leaves the same is not a change
  end if;
  new.updated_at := timestamptz 'epoch'
    + case nextval('public.titles_last_stamp') % 10
        when 0 then nextval('public.titles_last_stamp')
        else currval('public.titles_last_stamp')
      end * interval '1 microsecond';
  return new;
end
$$;

create trigger stamp_updated before update on public.titles
  for each row execute function public.titles_stamp_updated();

create function public.titles_refuse_removal() returns trigger language plpgsql
set search_path = pg_catalog, pg_temp as $$
begin
  raise exception 'titles cannot be removed: the feed of changes has no way to announce it'
    using errcode = 'feature_not_supported',
          hint = 'Set available_in_library to false instead.';
end
$$;

create trigger refuse_removal before delete or truncate on public.titles
  for each statement execute function public.titles_refuse_removal();
-- Replication skips the trigger above, which is for statements.
create trigger refuse_removal_of_row before delete on public.titles
  for each row execute function public.titles_refuse_removal();
alter table public.titles
  enable always trigger refuse_removal,
  enable always trigger refuse_removal_of_row;

-- For the feed's readers: the clock if every later commit is stamped later than it, otherwise null. The clock is read
-- before the lock is checked: a writer that takes the lock in between stamps later than that clock.
create function public.catalog_quiet_clock() returns timestamptz language plpgsql volatile
set search_path = pg_catalog, pg_temp as $$
declare
  clock timestamptz := clock_timestamp();
begin
  if exists (
    select from pg_locks
    where locktype = 'advisory'
      and database = (select oid from pg_database where datname = current_database())
      and classid = x'66656564'::integer::oid and objid = 1 and objsubid = 2
  ) then
    return null;
  end if;
  return clock;
end
$$;
