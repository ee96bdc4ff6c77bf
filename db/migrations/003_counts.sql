-- Headline counts, kept in the writing transaction so that reading them costs one row at any size. Nobody waits for
-- this row, because writers already take turns by their lock. The functions run as their owner, so a role that may
-- write titles needs no right to write the counts.

create table public.catalog_counts (
  singleton boolean primary key default true constraint catalog_counts_singleton check (singleton),
  titles bigint not null default 0,
  movies bigint not null default 0,
  series bigint not null default 0,
  available_in_library bigint not null default 0,
  people bigint not null default 0,
  collections bigint not null default 0
) with (fillfactor = 10); -- room for the next version on the same page, so that no update touches the index

insert into public.catalog_counts default values;

-- A transaction updates the row twice at most, however many statements it has. Each update leaves a version that
-- stays until the transaction ends, and finding the newest of a hundred thousand versions takes a millisecond, in
-- each further statement and for readers afterwards. Therefore only the first statement updates the row. The counts
-- of later statements wait in this table, and a deferred trigger of that first update adds them up at the end.
create table public.catalog_counts_waiting (
  added bigint[] not null -- in the order of the columns of catalog_counts
);

create function public.catalog_counts_add(added bigint[]) returns void language plpgsql as $$
begin
  update public.catalog_counts set
    titles = titles + added[1],
    movies = movies + added[2],
    series = series + added[3],
    available_in_library = available_in_library + added[4],
    people = people + added[5],
    collections = collections + added[6];
end
$$;

-- A setting records that the transaction has updated the row. A rollback to a savepoint undoes it together with the
-- update. If it is lost, the row is only updated once more.
create function public.catalog_counts_note(added bigint[]) returns void language plpgsql as $$
begin
  if current_setting('catalog.counting', true) = 'yes' then
    insert into public.catalog_counts_waiting values (added);
  else
    perform set_config('catalog.counting', 'yes', true);
    perform public.catalog_counts_add(added);
  end if;
end
$$;

create function public.catalog_counts_settle() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
declare
  total bigint[];
begin
  -- If SET CONSTRAINTS brings this forward, the next statement is the first one again.
  perform set_config('catalog.counting', '', true);
  if not exists (select from public.catalog_counts_waiting) then
    return null;
  end if;
  with waiting as (delete from public.catalog_counts_waiting returning added)
  select array[sum(added[1]), sum(added[2]), sum(added[3]), sum(added[4]), sum(added[5]), sum(added[6])]
    into total from waiting;
  perform public.catalog_counts_add(total);
  return null;
end
$$;

create constraint trigger settle_counts after update on public.catalog_counts
  deferrable initially deferred
  for each row execute function public.catalog_counts_settle();

-- Only for the triggers, which run as their owner.
revoke execute on function public.catalog_counts_add(bigint[]), public.catalog_counts_note(bigint[]) from public;

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

-- People and collections are counted alike.
create function public.catalog_count_other(counter text, added bigint) returns void language plpgsql as $$
begin
  if added <> 0 then
    perform public.catalog_counts_note(case counter when 'people' then array[0, 0, 0, 0, added, 0]
                                              when 'collections' then array[0, 0, 0, 0, 0, added] end);
  end if;
end
$$;

revoke execute on function public.catalog_count_other(text, bigint) from public;

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
