-- What the role of a server must not be able to write, should somebody break into a server.

-- No time is infinite: an expiry would never come, and pages and commands could not show it. Triggers set the times of
-- titles.
do $$
declare
  timed record;
begin
  for timed in
    select table_name as in_table, column_name as in_column from information_schema.columns
     where table_schema = 'public' and data_type = 'timestamp with time zone'
       and table_name not in ('titles', 'migrations') and (table_name, column_name) <> ('api_keys', 'expires_at')
  loop
    execute format('alter table public.%I add constraint %I check (isfinite(%I))', timed.in_table,
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
