-- Notices are recorded where something happens, and nothing searches for it later.

-- Each subject has one notice a day, in UTC. Servers of the version before could record a second one of a quota.
delete from public.notices n
 where exists (
   select from public.notices other
    where other.subject = n.subject and (other.occurred_at, other.id) < (n.occurred_at, n.id)
      and (other.occurred_at at time zone 'UTC')::date = (n.occurred_at at time zone 'UTC')::date);
create unique index notices_once_a_day on public.notices (subject, ((occurred_at at time zone 'UTC')::date));

-- Records the notice of a key that a finder revokes, in the transaction of the revocation. Nothing that goes wrong here
-- may hold up the revocation: the block catches it, and no lock is awaited for long.
create function public.notices_record_leak() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp set lock_timeout = '100ms' as $$
begin
  insert into public.notices (type, subject, data)
  values ('key.leaked', 'key.leaked ' || new.prefix,
          jsonb_build_object('key_prefix', new.prefix, 'developer_id', new.developer_id))
  on conflict do nothing;
  return null;
exception when others then
  raise warning 'the notice of the leaked key % could not be recorded: %', new.prefix, sqlerrm
    using errcode = '01CAT';
  return null;
end
$$;

create trigger record_leak after update on public.api_keys
  for each row
  when (old.revoked_at is null and new.revoked_at is not null and current_setting('catalog.actor', true) = 'finder')
  execute function public.notices_record_leak();
