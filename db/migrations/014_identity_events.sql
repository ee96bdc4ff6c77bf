-- Links between identities and developers leave events, and the secret of a sign-in at the provider is spent once.

-- The secret of a sign-in at the provider that has come back, as its SHA-256. A browser keeps it for the same time.
create table public.spent_sign_ins (
  hash bytea primary key
    constraint spent_sign_ins_hash_length check (octet_length(hash) = 32),
  expires_at timestamptz not null
);

create index spent_sign_ins_expires_at on public.spent_sign_ins (expires_at);

-- This runs as its owner, like the other triggers that record events.
create function public.events_of_identity() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'INSERT' then
    perform public.events_record(new.developer_id, 'identity_linked', null,
      jsonb_build_object('issuer', new.issuer, 'subject', new.subject));
  else
    perform public.events_record(old.developer_id, 'identity_unlinked', null,
      jsonb_build_object('issuer', old.issuer, 'subject', old.subject));
  end if;
  return null;
end
$$;

revoke execute on function public.events_of_identity() from public;

create trigger record_linked after insert or delete on public.identities
  for each row execute function public.events_of_identity();

-- Servers are the roles that start sign-ups, which end in a new developer. The other columns keep their defaults: a server
-- cannot make a developer on another plan.
do $$
declare
  role regrole;
begin
  for role in
    select grantee::regrole from pg_class, aclexplode(relacl)
     where pg_class.oid = 'public.sign_ups'::regclass and privilege_type = 'INSERT' and grantee not in (0, relowner)
  loop
    execute format('grant select, insert, update, delete on public.spent_sign_ins to %s', role);
    execute format('grant insert (project_name, attribution_required) on public.developers to %s', role);
  end loop;
end
$$;
