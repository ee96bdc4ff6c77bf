-- Links of operators move to the table of developers' links, which differ in nothing but whom they sign in.

alter table public.sign_in_links
  add column kind text not null default 'developer'
    constraint sign_in_links_kind check (kind in ('developer', 'operator')),
  alter column developer_id drop not null,
  add constraint sign_in_links_developer check ((kind = 'developer') = (developer_id is not null));

insert into public.sign_in_links (hash, kind, expires_at)
select hash, 'operator', expires_at from public.operator_sign_in_links;

-- The version before uses the links of operators under their old name. A later migration drops it.
drop table public.operator_sign_in_links;

create view public.operator_sign_in_links as
select hash, expires_at, kind from public.sign_in_links where kind = 'operator' with check option;

alter view public.operator_sign_in_links alter column kind set default 'operator';

-- Servers make links for developers. Only the owner makes them for operators, so that a server's role cannot let anybody in:
-- it may write neither the kind of a link nor the hash of one that exists. To remove links that nobody has locked, it must be
-- allowed to update something.
do $$
declare
  role regrole;
begin
  for role in
    select distinct grantee::regrole from pg_class, aclexplode(relacl)
     where pg_class.oid = 'public.sign_in_links'::regclass and privilege_type in ('INSERT', 'UPDATE')
       and grantee not in (0, relowner)
  loop
    execute format('revoke insert, update on public.sign_in_links from %s', role);
    execute format('grant insert (hash, developer_id, expires_at), update (developer_id) on public.sign_in_links to %s', role);
    execute format('grant select, delete on public.operator_sign_in_links to %s', role);
  end loop;
end
$$;
