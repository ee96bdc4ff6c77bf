-- Keys that expire and that have a successor, the plan of a developer, and a record of what happened to both.

-- Servers look keys up at every request, and would wait behind this if it waited for a long transaction, such as a
-- dump. It therefore takes all its locks at once, or releases them and tries again, as 005_roles.sql does.
do $$
declare
  give_up_at timestamptz := clock_timestamp() + interval '60 seconds';
  lock_timeout_before text := current_setting('lock_timeout');
begin
  loop
    begin
      perform set_config('lock_timeout', '500ms', true);
      lock table public.plans in share row exclusive mode;
      lock table public.api_keys, public.developers in access exclusive mode;
      perform set_config('lock_timeout', lock_timeout_before, true);
      return;
    exception
      when lock_not_available then
        if clock_timestamp() > give_up_at then
          raise exception 'the tables of keys, developers and plans are in use by a long transaction, such as a dump'
            using errcode = 'lock_not_available', hint = 'Migrate again when it has ended.';
        end if;
        perform pg_sleep(0.5);
    end;
  end loop;
end
$$;

-- The plan of the keys that developers create themselves. An installation may have removed the default plan.
insert into public.plans (id, name, requests_per_minute, requests_per_day, commercial_use)
values ('free', 'Free', 60, 10000, false) on conflict (id) do nothing;

alter table public.developers
  add column plan_id text collate "C" not null default 'free' references public.plans (id);

alter table public.api_keys
  -- Null for never. 'infinity' is not allowed, since it has no time left to count down.
  add column expires_at timestamptz
    constraint api_keys_expires_at_finite check (isfinite(expires_at)),
  -- The key that replaces this one, if this one was rolled. This one may stay active until it expires.
  add column successor_id integer
    constraint api_keys_successor_unique unique
    references public.api_keys (id)
    constraint api_keys_successor_other check (successor_id <> id),
  -- The SHA-256 of the token of the form that created the key, so that the same form never creates a second one.
  add column form_hash bytea
    constraint api_keys_form_hash_length check (octet_length(form_hash) = 32),
  add constraint api_keys_form_unique unique (developer_id, form_hash);

create or replace trigger announce_changed after update on public.api_keys
  for each row
  when ((old.id, old.prefix, old.hash, old.developer_id, old.plan_id, old.revoked_at, old.expires_at)
        is distinct from (new.id, new.prefix, new.hash, new.developer_id, new.plan_id, new.revoked_at, new.expires_at))
  execute function public.announce_callers_changed();
alter table public.api_keys enable always trigger announce_changed;

-- What happened to a developer and to the developer's keys. Rows are written in the transaction of the change and
-- never contain a secret. They reference nothing, because they outlive what they describe.
create table public.events (
  id bigint generated always as identity primary key,
  at timestamptz not null default now(),
  developer_id integer not null,
  kind text collate "C" not null
    constraint events_kind_format check (kind ~ '^[a-z]+(_[a-z]+)*$'),
  actor text collate "C" not null
    constraint events_actor_known check (actor in ('developer', 'operator', 'finder', 'system')),
  -- Null for events of the developer, such as a suspension.
  key_prefix text collate "C",
  details jsonb not null default '{}'
);

create index events_developer_id on public.events (developer_id, id);

-- The actor comes from this setting of the transaction. Plain SQL sets none and counts as the operator. An unknown
-- actor must not hold up a revocation.
create function public.events_record(event_developer_id integer, event_kind text, event_key_prefix text, event_details jsonb)
returns void language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  actor text := current_setting('catalog.actor', true);
begin
  insert into public.events (developer_id, kind, actor, key_prefix, details)
  values (event_developer_id, event_kind,
          case when actor in ('developer', 'finder', 'system') then actor else 'operator' end,
          event_key_prefix, jsonb_strip_nulls(event_details));
end
$$;

-- RFC 3339 in UTC, because the JSON form of a time depends on the session.
create function public.events_time(at timestamptz) returns text language sql stable
set search_path = pg_catalog, pg_temp as $$
  select to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;

-- These run as their owner, so that a role that may change keys needs no right to write events.
create function public.events_of_key() returns trigger language plpgsql
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

create function public.events_of_developer() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'INSERT' then
    perform public.events_record(new.id, 'registered', null, jsonb_build_object('plan', new.plan_id));
    return null;
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

create trigger record_created after insert on public.api_keys
  for each row execute function public.events_of_key();
-- Not when a key was last used, which is written continually.
create trigger record_changed after update on public.api_keys
  for each row
  when ((old.plan_id, old.revoked_at, old.expires_at, old.successor_id)
        is distinct from (new.plan_id, new.revoked_at, new.expires_at, new.successor_id))
  execute function public.events_of_key();
create trigger record_created after insert on public.developers
  for each row execute function public.events_of_developer();
create trigger record_changed after update on public.developers
  for each row
  when ((old.plan_id, old.suspended_at) is distinct from (new.plan_id, new.suspended_at))
  execute function public.events_of_developer();
