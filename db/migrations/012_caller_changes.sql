-- A change to what a key may do is announced by a row, which servers look for every second. A notification makes them
-- look at once. PostgreSQL cannot commit a transaction that notifies while its queue is full, and any role that may
-- connect can fill the queue. A change therefore sends no notification while the queue is more than half full; from
-- then on PostgreSQL logs warnings, too.

-- One row for each transaction that changed callers, as long as servers may still need it. A server compares the rows
-- with the snapshot of its last look, so a transaction that commits late is not overlooked. The table is unlogged
-- because a restart ends the connections of all servers, which then begin anew, because the numbers mean nothing in
-- another cluster, and because logical replication leaves unlogged tables out.
create unlogged table public.caller_changes (
  txid xid8 primary key default pg_current_xact_id()
);

-- It runs as its owner, so that a role that may change keys needs no further rights.
create or replace function public.announce_callers_changed() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
begin
  insert into public.caller_changes default values on conflict do nothing;
  if not found then
    return null;
  end if;
  -- Removes rows that were committed before: a server that lacks one of them lacks the new row as well. A transaction
  -- of a stricter isolation level would fail if another one had removed a row.
  if current_setting('transaction_isolation') = 'read committed' then
    delete from public.caller_changes where txid = any (array(
      select txid from public.caller_changes where txid <> pg_current_xact_id() for update skip locked));
  end if;
  if pg_notification_queue_usage() < 0.5 then
    perform pg_notify('catalog_callers', '');
  end if;
  return null;
end
$$;

-- Servers read it, and they may run as another role than the owner: one that can read keys.
do $$
declare
  reader text;
begin
  for reader in
    select case grantee when 0 then 'public' else grantee::regrole::text end from pg_class, aclexplode(relacl)
     where pg_class.oid = 'public.api_keys'::regclass and privilege_type = 'SELECT' and grantee <> relowner
  loop
    execute format('grant select on public.caller_changes to %s', reader);
  end loop;
end
$$;
