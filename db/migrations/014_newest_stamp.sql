-- The newest committed stamp, or a later one that no title will get. A reader of the feed stops there: beyond it lie only
-- the rows of an active writer, and PostgreSQL would look at each of them to find that it is not committed.
--
-- Each transaction that changes titles sets it to the last stamp drawn, while it holds the writers' lock. So it becomes
-- visible together with the titles up to it, and all later stamps are later than it. Null is no bound: after rows were
-- written past the triggers, until the next transaction that is not.
alter table public.catalog_counts add column newest_stamp timestamptz;

create or replace function public.catalog_counts_add(added bigint[]) returns void language plpgsql
set search_path = pg_catalog, pg_temp as $$
begin
  update public.catalog_counts set
    titles = titles + added[1],
    movies = movies + added[2],
    series = series + added[3],
    available_in_library = available_in_library + added[4],
    people = people + added[5],
    collections = collections + added[6],
    newest_stamp = (select timestamptz 'epoch' + last_value * interval '1 microsecond' from public.titles_last_stamp),
    updated_by = pg_current_xact_id(),
    has_waiting = false;
end
$$;

-- What waits queues the trigger that sets the stamp again, even if it adds nothing.
create or replace function public.catalog_counts_note(added bigint[]) returns void language plpgsql
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
  elsif added = '{0,0,0,0,0,0}' then
    return;
  end if;
  insert into public.catalog_counts_waiting (added, is_first) values (added, is_first);
end
$$;

create or replace function public.titles_count_updated() returns trigger language plpgsql
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
  if exists (select from new_rows) then
    perform public.catalog_counts_note(added);
  end if;
  return null;
end
$$;

-- Logical replication and session_replication_role = replica skip the triggers that set the stamp. They fire this one.
create function public.titles_forget_newest_stamp() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
begin
  update public.catalog_counts set newest_stamp = null where newest_stamp is not null;
  return null;
end
$$;

create trigger forget_newest_stamp after insert or update on public.titles
  for each row execute function public.titles_forget_newest_stamp();
alter table public.titles enable replica trigger forget_newest_stamp;
