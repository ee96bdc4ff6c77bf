-- What the role of a server must not be able to write, should somebody break into a server.

-- No time is infinite: an expiry would never come, and pages and commands could not show it. Triggers set the times of
-- titles.
do $$
declare
  timed record;
begin
  -- Of our own tables: another program may have some in this schema. The next migration looks at the rows that are
  -- there, without a lock that keeps readers waiting.
  for timed in
    select relname as in_table, attname as in_column
      from pg_attribute join pg_class on pg_class.oid = attrelid
     where relnamespace = 'public'::regnamespace and atttypid = 'timestamptz'::regtype and not attisdropped
       and relname in ('api_key_outcomes', 'api_key_usage', 'api_keys', 'caller_change_readers',
                       'caller_changes_horizon', 'catalog_counts', 'catalog_feed', 'developers', 'events',
                       'failed_requests', 'identities', 'notices', 'passkey_challenges', 'passkeys', 'plans', 'sessions',
                       'sign_in_links', 'sign_ups', 'spent_sign_ins')
       and (relname, attname) <> ('api_keys', 'expires_at')
  loop
    execute format('alter table public.%I add constraint %I check (isfinite(%I)) not valid', timed.in_table,
                   timed.in_table || '_' || timed.in_column || '_finite', timed.in_column);
  end loop;
end
$$;

-- A key gets the plan of its developer, or that of the key that it replaces. Whoever may change the plan of a key may
-- also create one with any plan.
create function public.api_keys_require_plan() returns trigger language plpgsql
set search_path = pg_catalog, pg_temp as $$
begin
  if not has_column_privilege('public.api_keys', 'plan_id', 'update')
    and not exists (select from public.developers where id = new.developer_id and plan_id = new.plan_id)
    and not exists (
      select from public.api_keys
       where developer_id = new.developer_id and plan_id = new.plan_id
         and revoked_at is null and (expires_at is null or expires_at > now()))
  then
    raise exception 'developer % has no active key on the plan "%"', new.developer_id, new.plan_id
      using errcode = 'insufficient_privilege';
  end if;
  return new;
end
$$;

create trigger require_plan before insert on public.api_keys
  for each row execute function public.api_keys_require_plan();
