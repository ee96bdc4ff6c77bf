-- A change to what a key may do depends on nothing that may be missing. What it writes finds room in pages that exist, so
-- a full disk does not stop it; it does not need its event; and it does not clear up after others.

-- A change that has begun ends first, since its trigger has the statements of the version before. Readers do not wait.
lock table public.api_keys, public.developers, public.plans, public.catalog_feed in share row exclusive mode;

-- Room for the next version of a row on the row's own page. No index has a column that changes here, so none gets an
-- entry.
alter table public.api_keys set (fillfactor = 80);
alter table public.developers set (fillfactor = 90);
-- Whoever revokes a key in the settings has a session, which notes when it was last seen.
alter table public.sessions set (fillfactor = 80);
drop index public.sessions_last_seen_at;

-- A job removes announcements that have been committed for five minutes, when every server has read them, or has lost
-- its connection: servers look every second. A row is as old as its transaction, which may have been open for long. Its
-- time therefore counts from the horizon: all transactions before it had ended when it was set.
drop index public.caller_changes_found_at;
alter table public.caller_changes drop column found_at;

-- Unlogged for the same reasons as the announcements.
create unlogged table public.caller_changes_horizon (
  singleton boolean primary key default true constraint caller_changes_horizon_singleton check (singleton),
  txid xid8 not null,
  set_at timestamptz not null
);

-- Removes at most 1,000 rows, and returns how many. Several servers may call it at the same time. A restored dump may
-- have a horizon of transactions that are yet to come.
create function public.caller_changes_remove_old() returns integer language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
declare
  removed integer;
  oldest_running xid8 := pg_snapshot_xmin(pg_current_snapshot());
begin
  delete from public.caller_changes where ctid = any (array(
    select c.ctid from public.caller_changes c join public.caller_changes_horizon h on c.txid < h.txid
     where h.txid <= oldest_running and h.set_at < clock_timestamp() - interval '5 minutes'
     limit 1000 for update of c skip locked));
  get diagnostics removed = row_count;
  if removed < 1000 then
    insert into public.caller_changes_horizon as h (txid, set_at) values (oldest_running, clock_timestamp())
    on conflict (singleton) do update set txid = excluded.txid, set_at = excluded.set_at
     where h.set_at < clock_timestamp() - interval '5 minutes' or h.txid > oldest_running;
  end if;
  return removed;
end
$$;

-- The table keeps its pages when it is vacuumed, and gets its first ones here.
alter table public.caller_changes set (vacuum_truncate = off);
insert into public.caller_changes (developer_id) select generate_series(1, 2000);
delete from public.caller_changes where txid = pg_current_xact_id();

-- Servers look every second, so nothing notifies them. It runs as its owner, so that a role that may change keys needs no
-- further rights.
create or replace function public.announce_callers_changed() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
declare
  developer integer := 0;
  -- How many rows the transaction has written. Anybody may set it, which at worst announces a change of everything.
  written integer := coalesce(substring(current_setting('catalog.announced', true) from '^\d{1,6}$')::integer, 0);
begin
  -- Servers apply a revocation once it is committed, so no crash may undo the commit. Any role may turn this off.
  if current_setting('synchronous_commit') not in ('on', 'remote_apply') then
    perform set_config('synchronous_commit', 'on', true);
  end if;
  -- After so many developers, the transaction has changed everything: servers need not read a row for each.
  if tg_level = 'ROW' and written < 1000 then
    if tg_table_name = 'api_keys' then
      developer := old.developer_id;
    elsif tg_table_name = 'developers' then
      developer := old.id;
    end if;
  end if;
  insert into public.caller_changes (developer_id) values (developer) on conflict do nothing;
  if found then
    perform set_config('catalog.announced', (written + 1)::text, true);
  end if;
  return null;
end
$$;

-- Not for the plan of a developer, which decides the plan of keys to come.
create or replace trigger announce_changed after update on public.developers
  for each row
  when ((old.id, old.project_name, old.attribution_required, old.suspended_at)
        is distinct from (new.id, new.project_name, new.attribution_required, new.suspended_at))
  execute function public.announce_callers_changed();
alter table public.developers enable always trigger announce_changed;

-- An event that cannot be recorded costs a warning, not the change. It waits for other sessions no longer than this.
create or replace function public.events_record(event_developer_id integer, event_kind text, event_key_prefix text, event_details jsonb)
returns void language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '100ms' as $$
declare
  actor text := current_setting('catalog.actor', true);
begin
  insert into public.events (developer_id, kind, actor, key_prefix, details)
  values (event_developer_id, event_kind,
          case when actor in ('developer', 'finder', 'system') then actor else 'operator' end,
          event_key_prefix, jsonb_strip_nulls(event_details));
exception when others then
  raise warning 'the event "%" of developer % could not be recorded: %', event_kind, event_developer_id, sqlerrm
    using errcode = '01CAT';
end
$$;
