-- A link that signs an operator in to the operator pages, once. The row is removed when it does. The session lives in the
-- memory of the server, so that it outlasts an outage of the database.
create table public.operator_sign_in_links (
  hash bytea primary key
    constraint operator_sign_in_links_hash_length check (octet_length(hash) = 32),
  expires_at timestamptz not null
);

-- Servers spend links; only the owner makes them, so that a server's role cannot let anybody in. Servers are the roles that
-- start sign-ups.
do $$
declare
  role regrole;
begin
  for role in
    select grantee::regrole from pg_class, aclexplode(relacl)
     where pg_class.oid = 'public.sign_ups'::regclass and privilege_type = 'INSERT' and grantee not in (0, relowner)
  loop
    execute format('grant select, delete on public.operator_sign_in_links to %s', role);
  end loop;
end
$$;
