-- Developers edit the labels and expiries of their keys. A change of a label leaves an event, and so does a new name of a
-- project.

create or replace function public.events_of_key() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'INSERT' then
    perform public.events_record(new.developer_id, 'created', new.prefix,
      jsonb_build_object('plan', new.plan_id, 'expires_at', public.events_time(new.expires_at)));
    return null;
  end if;
  if new.plan_id <> old.plan_id then
    perform public.events_record(new.developer_id, 'plan_changed', new.prefix,
      jsonb_build_object('from', old.plan_id, 'to', new.plan_id));
  end if;
  if new.label is distinct from old.label then
    perform public.events_record(new.developer_id, 'label_changed', new.prefix,
      jsonb_build_object('from', old.label, 'to', new.label));
  end if;
  if new.successor_id is not null and new.successor_id is distinct from old.successor_id then
    perform public.events_record(new.developer_id, 'rolled', new.prefix,
      jsonb_build_object('successor', (select prefix from public.api_keys where id = new.successor_id),
                         'expires_at', public.events_time(new.expires_at)));
  elsif new.expires_at is distinct from old.expires_at then
    perform public.events_record(new.developer_id, 'expiry_changed', new.prefix,
      jsonb_build_object('expires_at', public.events_time(new.expires_at)));
  end if;
  if new.revoked_at is not null and old.revoked_at is null then
    perform public.events_record(new.developer_id, 'revoked', new.prefix, '{}');
  end if;
  return null;
end
$$;

create or replace trigger record_changed after update on public.api_keys
  for each row
  when ((old.plan_id, old.label, old.revoked_at, old.expires_at, old.successor_id)
        is distinct from (new.plan_id, new.label, new.revoked_at, new.expires_at, new.successor_id))
  execute function public.events_of_key();

create or replace function public.events_of_developer() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'INSERT' then
    perform public.events_record(new.id, 'registered', null, jsonb_build_object('plan', new.plan_id));
    return null;
  end if;
  if new.project_name <> old.project_name then
    perform public.events_record(new.id, 'renamed', null,
      jsonb_build_object('from', old.project_name, 'to', new.project_name));
  end if;
  if new.plan_id <> old.plan_id then
    perform public.events_record(new.id, 'plan_changed', null, jsonb_build_object('from', old.plan_id, 'to', new.plan_id));
  end if;
  if (new.suspended_at is null) <> (old.suspended_at is null) then
    perform public.events_record(new.id, case when new.suspended_at is null then 'reinstated' else 'suspended' end,
      null, '{}');
  end if;
  return null;
end
$$;

create or replace trigger record_changed after update on public.developers
  for each row
  when ((old.project_name, old.plan_id, old.suspended_at)
        is distinct from (new.project_name, new.plan_id, new.suspended_at))
  execute function public.events_of_developer();

-- Servers are the roles that create keys. They can change expiries already.
do $$
declare
  role regrole;
begin
  for role in
    select grantee::regrole from pg_class, aclexplode(relacl)
     where pg_class.oid = 'public.api_keys'::regclass and privilege_type = 'INSERT' and grantee not in (0, relowner)
  loop
    execute format('grant update (label) on public.api_keys to %s', role);
  end loop;
end
$$;
