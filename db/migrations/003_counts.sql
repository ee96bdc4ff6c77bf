-- Headline counts, kept in the writing transaction so that reading them costs one row at any size. Nobody waits for
-- this row, because writers already take turns by their lock. The triggers' functions run as their owner, so a role
-- that may write titles needs no right to write the counts.

create table public.catalog_counts (
  singleton boolean primary key default true constraint catalog_counts_singleton check (singleton),
  titles bigint not null default 0,
  movies bigint not null default 0,
  series bigint not null default 0,
  available_in_library bigint not null default 0,
  people bigint not null default 0,
  collections bigint not null default 0,
  -- The transaction that updated the row last, and whether more of its counts wait. Only the owner can write these
  -- columns, and a rollback to a savepoint undoes them together with the counts.
  --
  -- A dump may name a transaction that the restored server has yet to run. That costs no count: all counts of that
  -- transaction wait for its end.
  updated_by xid8 not null default '0',
  has_waiting boolean not null default false
) with (fillfactor = 10); -- room for the next version on the same page, so that no update touches the index

insert into public.catalog_counts default values;

-- A transaction updates the row a few times at most, however many statements it has. Each update leaves a version that
-- stays until the transaction ends, and finding the newest of a hundred thousand versions takes a millisecond, in
-- each further statement and for readers afterwards. Therefore only the first statement adds to the row. The counts
-- of later statements wait in this table, and a deferred trigger adds them up at the end. The first count that waits
-- queues that trigger, so none can wait without it.
create table public.catalog_counts_waiting (
  added bigint[] not null, -- in the order of the columns of catalog_counts
  is_first boolean not null default true
);

create function public.catalog_counts_add(added bigint[]) returns void language plpgsql
set search_path = pg_catalog, pg_temp as $$
begin
  update public.catalog_counts set
    titles = titles + added[1],
    movies = movies + added[2],
    series = series + added[3],
    available_in_library = available_in_library + added[4],
    people = people + added[5],
    collections = collections + added[6],
    updated_by = pg_current_xact_id(),
    has_waiting = false;
end
$$;

create function public.catalog_counts_note(added bigint[]) returns void language plpgsql
set search_path = pg_catalog, pg_temp as $$
declare
  is_first boolean;
begin
  select not has_waiting into is_first from public.catalog_counts where updated_by = pg_current_xact_id();
  if not found then
    perform public.catalog_counts_add(added);
    return;
  end if;
  if is_first then
    update public.catalog_counts set has_waiting = true;
  end if;
  insert into public.catalog_counts_waiting (added, is_first) values (added, is_first);
end
$$;

create function public.catalog_counts_settle() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
declare
  total bigint[];
begin
  with waiting as (delete from public.catalog_counts_waiting returning added)
  select array[sum(added[1]), sum(added[2]), sum(added[3]), sum(added[4]), sum(added[5]), sum(added[6])]
    into total from waiting;
  if total[1] is not null then
    perform public.catalog_counts_add(total);
  end if;
  return null;
end
$$;

create constraint trigger settle_counts after insert on public.catalog_counts_waiting
  deferrable initially deferred
  for each row when (new.is_first) execute function public.catalog_counts_settle();

create function public.titles_count_inserted() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
declare
  added bigint[];
begin
  select array[count(*),
               count(*) filter (where media_type = 'movie'),
               count(*) filter (where media_type = 'series'),
               count(*) filter (where available_in_library), 0, 0]
    into added from new_rows;
  if added[1] > 0 then
    perform public.catalog_counts_note(added);
  end if;
  return null;
end
$$;

create trigger count_inserted after insert on public.titles
  referencing new table as new_rows
  for each statement execute function public.titles_count_inserted();

create function public.titles_count_updated() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
declare
  added bigint[];
begin
  select array[0,
               coalesce(sum(sign) filter (where media_type = 'movie'), 0),
               coalesce(sum(sign) filter (where media_type = 'series'), 0),
               coalesce(sum(sign) filter (where available_in_library), 0), 0, 0]
    into added
    from (
      select 1 as sign, media_type, available_in_library from new_rows
      union all
      select -1, media_type, available_in_library from old_rows
    ) signed;
  if added <> '{0,0,0,0,0,0}' then
    perform public.catalog_counts_note(added);
  end if;
  return null;
end
$$;

create trigger count_updated after update on public.titles
  referencing old table as old_rows new table as new_rows
  for each statement execute function public.titles_count_updated();

-- People and collections are counted alike. The counter is a name, the type that its callers pass: for text, another
-- function could match their call better.
create function public.catalog_count_other(counter name, added bigint) returns void language plpgsql
set search_path = pg_catalog, pg_temp as $$
begin
  if added <> 0 then
    perform public.catalog_counts_note(case counter when 'people' then array[0, 0, 0, 0, added, 0]
                                              when 'collections' then array[0, 0, 0, 0, 0, added] end);
  end if;
end
$$;

create function public.catalog_count_inserted() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform public.catalog_count_other(tg_table_name, (select count(*) from new_rows));
  return null;
end
$$;

create function public.catalog_count_deleted() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform public.catalog_count_other(tg_table_name, -(select count(*) from old_rows));
  return null;
end
$$;

-- Resets all counts, including those that wait.
create function public.catalog_count_truncated() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
declare
  counter integer := case tg_table_name when 'people' then 5 else 6 end;
  counted bigint := (select case tg_table_name when 'people' then people else collections end from public.catalog_counts);
  waiting bigint := (select coalesce(sum(added[counter]), 0) from public.catalog_counts_waiting);
begin
  perform public.catalog_count_other(tg_table_name, -counted - waiting);
  return null;
end
$$;

create trigger count_inserted after insert on public.people
  referencing new table as new_rows for each statement execute function public.catalog_count_inserted();
create trigger count_deleted after delete on public.people
  referencing old table as old_rows for each statement execute function public.catalog_count_deleted();
create trigger count_truncated after truncate on public.people
  for each statement execute function public.catalog_count_truncated();

create trigger count_inserted after insert on public.collections
  referencing new table as new_rows for each statement execute function public.catalog_count_inserted();
create trigger count_deleted after delete on public.collections
  referencing old table as old_rows for each statement execute function public.catalog_count_deleted();
create trigger count_truncated after truncate on public.collections
  for each statement execute function public.catalog_count_truncated();
