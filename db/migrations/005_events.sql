-- What happened to a developer and to the developer's keys, passkeys and identities. Rows are written in the
-- transaction of the change and never contain a secret. They reference nothing, because they outlive what they
-- describe.

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

-- In the order of the lists, which read no more than they show.
create index events_developer_id on public.events (developer_id, at, id);
create index events_key_prefix on public.events (key_prefix, at, id) where key_prefix is not null;
-- Finders are rare among those who cause events.
create index events_of_finders on public.events (at) where actor = 'finder';

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

-- This and the other functions of triggers run as their owner, so that a role that may change keys needs no right to
-- write events.
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

create trigger record_created after insert on public.api_keys
  for each row execute function public.events_of_key();
-- Not when a key was last used, which is written continually.
create trigger record_changed after update on public.api_keys
  for each row
  when ((old.plan_id, old.label, old.revoked_at, old.expires_at, old.successor_id)
        is distinct from (new.plan_id, new.label, new.revoked_at, new.expires_at, new.successor_id))
  execute function public.events_of_key();

create function public.events_of_developer() returns trigger language plpgsql
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

create trigger record_created after insert on public.developers
  for each row execute function public.events_of_developer();
create trigger record_changed after update on public.developers
  for each row
  when ((old.project_name, old.plan_id, old.suspended_at)
        is distinct from (new.project_name, new.plan_id, new.suspended_at))
  execute function public.events_of_developer();

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

create trigger record_linked after insert or delete on public.identities
  for each row execute function public.events_of_identity();

create function public.events_of_passkey() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'INSERT' then
    perform public.events_record(new.developer_id, 'passkey_added', null, jsonb_build_object('name', new.name));
  else
    perform public.events_record(old.developer_id, 'passkey_removed', null, jsonb_build_object('name', old.name));
  end if;
  return null;
end
$$;

create trigger record_added after insert or delete on public.passkeys
  for each row execute function public.events_of_passkey();

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
