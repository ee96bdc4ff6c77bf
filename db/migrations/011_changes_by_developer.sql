-- An announcement of a change names the developer whose keys are affected, so that a server drops the records of that
-- developer only.

alter table public.caller_changes
  -- 0 for every developer.
  add column developer_id integer not null default 0,
  -- When another transaction found the row committed; null until then.
  add column found_at timestamptz;
alter table public.caller_changes drop constraint caller_changes_pkey;
alter table public.caller_changes add primary key (txid, developer_id);
create index caller_changes_found_at on public.caller_changes (found_at);

-- It runs as its owner, so that a role that may change keys needs no further rights.
create or replace function public.announce_callers_changed() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
declare
  developer integer := 0;
begin
  -- Servers apply a revocation once it is committed, so no crash may undo the commit. Any role may turn this off.
  if current_setting('synchronous_commit') not in ('on', 'remote_apply') then
    perform set_config('synchronous_commit', 'on', true);
  end if;
  if tg_level = 'ROW' and tg_table_name = 'api_keys' then
    developer := old.developer_id;
  elsif tg_level = 'ROW' and tg_table_name = 'developers' then
    developer := old.id;
  end if;
  insert into public.caller_changes (developer_id) values (developer) on conflict do nothing;
  if not found then
    return null;
  end if;
  -- Removes what every server has read, or has lost its connection since: servers look every second. A row is as old
  -- as its transaction, which may have been open for long, so its time counts from when it was found committed. A
  -- transaction of a stricter isolation level would fail if another one had removed or read a row. Some at a time, and
  -- once in a transaction, so that a change does not wait for what others have left.
  if current_setting('transaction_isolation') = 'read committed' then
    if not exists (
      select from public.caller_changes where txid = pg_current_xact_id() and developer_id <> developer
    ) then
      delete from public.caller_changes where ctid = any (array(
        select ctid from public.caller_changes
         where found_at < clock_timestamp() - interval '5 minutes' limit 1000 for update skip locked));
      update public.caller_changes set found_at = clock_timestamp() where ctid = any (array(
        select ctid from public.caller_changes
         where found_at is null and txid <> pg_current_xact_id() limit 1000 for update skip locked));
    end if;
  end if;
  -- PostgreSQL sends equal notifications of a transaction once.
  if pg_notification_queue_usage() < 0.5 then
    perform pg_notify('catalog_callers', '');
  end if;
  return null;
end
$$;
