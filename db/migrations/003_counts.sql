-- Headline counts, kept in the writing transaction so that reading them costs the same at any size. One row: writers of
-- the catalogue are serialised by their lock anyway, so it is not contended, and one row is one read. The functions run as
-- their owner, so that who may write titles need not be given the counts to write.

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

create function public.titles_count_inserted() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
begin
  update public.catalog_counts c set
    titles = c.titles + n.titles,
    movies = c.movies + n.movies,
    series = c.series + n.series,
    available_in_library = c.available_in_library + n.available
  from (
    select count(*) as titles,
           count(*) filter (where media_type = 'movie') as movies,
           count(*) filter (where media_type = 'series') as series,
           count(*) filter (where available_in_library) as available
    from new_rows
  ) n
  where n.titles > 0;
  return null;
end
$$;

create trigger count_inserted after insert on public.titles
  referencing new table as new_rows
  for each statement execute function public.titles_count_inserted();

create function public.titles_count_updated() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
begin
  update public.catalog_counts c set
    movies = c.movies + d.movies,
    series = c.series + d.series,
    available_in_library = c.available_in_library + d.available
  from (
    select coalesce(sum(sign) filter (where media_type = 'movie'), 0) as movies,
           coalesce(sum(sign) filter (where media_type = 'series'), 0) as series,
           coalesce(sum(sign) filter (where available_in_library), 0) as available
    from (
      select 1 as sign, media_type, available_in_library from new_rows
      union all
      select -1, media_type, available_in_library from old_rows
    ) signed
  ) d
  where (d.movies, d.series, d.available) <> (0, 0, 0);
  return null;
end
$$;

create trigger count_updated after update on public.titles
  referencing old table as old_rows new table as new_rows
  for each statement execute function public.titles_count_updated();

-- People and collections are counted alike: the table's name is the counter's.
create function public.catalog_count_inserted() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
declare
  n bigint := (select count(*) from new_rows);
begin
  if n > 0 then
    execute format('update public.catalog_counts set %1$I = %1$I + $1', tg_table_name) using n;
  end if;
  return null;
end
$$;

create function public.catalog_count_deleted() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
declare
  n bigint := (select count(*) from old_rows);
begin
  if n > 0 then
    execute format('update public.catalog_counts set %1$I = %1$I - $1', tg_table_name) using n;
  end if;
  return null;
end
$$;

create function public.catalog_count_truncated() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
begin
  execute format('update public.catalog_counts set %1$I = 0', tg_table_name);
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
