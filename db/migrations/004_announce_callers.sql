-- Announces changes that servers must not overlook while they keep records of callers in memory. They listen on the
-- channel, and read anew what they use. PostgreSQL delivers it when the change is committed, and once a transaction.

create function public.announce_callers_changed() returns trigger language plpgsql as $$
begin
  perform pg_notify('catalog_callers', '');
  return null;
end
$$;

-- Not when a key was last used, which is written all the time.
create trigger announce_changed after update on public.api_keys
  for each row
  when ((old.id, old.prefix, old.hash, old.developer_id, old.plan_id, old.revoked_at)
        is distinct from (new.id, new.prefix, new.hash, new.developer_id, new.plan_id, new.revoked_at))
  execute function public.announce_callers_changed();
create trigger announce_removed after delete or truncate on public.api_keys
  for each statement execute function public.announce_callers_changed();

-- A developer or a plan that a key belongs to cannot be removed.
create trigger announce_changed after update on public.developers
  for each row when (old.* is distinct from new.*)
  execute function public.announce_callers_changed();
create trigger announce_changed after update on public.plans
  for each row when (old.* is distinct from new.*)
  execute function public.announce_callers_changed();
