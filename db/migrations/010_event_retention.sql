-- Events are kept for a bounded time. The role of a server may not delete them, so that an intruder on a server
-- cannot erase traces. The role may call this function, which runs as its owner and removes only old events.
--
-- The oldest events have the smallest ids, so no index on the time is needed. Several servers may call it at the same
-- time.
create function public.events_remove_old() returns integer language sql
security definer set search_path = pg_catalog, pg_temp as $$
  with removed as (
    delete from public.events where id = any (array(
      select id from public.events
       where id in (select id from public.events order by id limit 1000) and at < now() - interval '400 days'
       for update skip locked))
    returning id
  )
  select count(*)::integer from removed
$$;

revoke execute on function public.events_remove_old() from public;

-- Servers run as the roles that write events.
do $$
declare
  role regrole;
begin
  for role in
    select grantee::regrole from pg_class, aclexplode(relacl)
     where pg_class.oid = 'public.events'::regclass and privilege_type = 'INSERT' and grantee not in (0, relowner)
  loop
    execute format('grant execute on function public.events_remove_old() to %s', role);
  end loop;
end
$$;
