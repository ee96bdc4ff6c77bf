-- Who may call: plans, the developers registered for them, and their keys.

-- The default of PostgreSQL 15 and later; a database created by an earlier version may still let everybody create
-- objects here.
revoke create on schema public from public;

create table public.plans (
  id text collate "C" primary key
    constraint plans_id_format check (id ~ '^[a-z][a-z0-9_-]{0,31}$'),
  name text not null
    constraint plans_name_length check (char_length(name) between 1 and 100),
  requests_per_minute integer not null
    constraint plans_requests_per_minute_positive check (requests_per_minute >= 1),
  requests_per_day integer not null
    constraint plans_requests_per_day_positive check (requests_per_day >= 1),
  commercial_use boolean not null,
  created_at timestamptz not null default now()
);

insert into public.plans (id, name, requests_per_minute, requests_per_day, commercial_use) values
  ('free', 'Free', 60, 10000, false),
  ('pro', 'Pro', 600, 250000, true),
  ('scale', 'Scale', 6000, 5000000, true);

create table public.developers (
  id integer generated always as identity primary key,
  project_name text not null
    constraint developers_project_name_length check (char_length(project_name) between 1 and 200),
  attribution_required boolean not null default false,
  suspended_at timestamptz,
  created_at timestamptz not null default now(),
  -- The plan of the keys that the developer creates.
  plan_id text collate "C" not null default 'free' references public.plans (id)
);

create table public.api_keys (
  id integer generated always as identity primary key,
  prefix text collate "C" not null
    constraint api_keys_prefix_unique unique
    constraint api_keys_prefix_format check (prefix ~ '^svc_[0-9A-Za-z]{8}$'),
  -- The SHA-256 of the whole key. The key carries 190 random bits, so a slow hash would add nothing but latency.
  hash bytea not null
    constraint api_keys_hash_unique unique
    constraint api_keys_hash_length check (octet_length(hash) = 32),
  developer_id integer not null references public.developers (id),
  plan_id text collate "C" not null references public.plans (id),
  label text
    constraint api_keys_label_length check (char_length(label) between 1 and 200),
  created_at timestamptz not null default now(),
  last_used_at timestamptz,
  revoked_at timestamptz,
  -- Null for never. 'infinity' is not allowed, since it has no time left to count down.
  expires_at timestamptz
    constraint api_keys_expires_at_finite check (isfinite(expires_at)),
  -- The key that replaces this one, if this one was rolled. This one may stay active until it expires.
  successor_id integer
    constraint api_keys_successor_unique unique
    references public.api_keys (id)
    constraint api_keys_successor_other check (successor_id <> id),
  -- The SHA-256 of the token of the form that created the key, so that the same form never creates a second one.
  form_hash bytea
    constraint api_keys_form_hash_length check (octet_length(form_hash) = 32),
  constraint api_keys_form_unique unique (developer_id, form_hash)
);

create index api_keys_developer_id on public.api_keys (developer_id);

-- About all functions here: whatever the search path of its caller, a function finds what it names in PostgreSQL's own
-- schema first. The caller's temporary schema must be named to come last: unnamed, it would come first.

-- A revoked key never works again: not by mistake, and not by a plain UPDATE either.
create function public.api_keys_keep_revoked() returns trigger language plpgsql
set search_path = pg_catalog, pg_temp as $$
begin
  raise exception 'key % is revoked, and a revoked key stays revoked', old.prefix
    using errcode = 'integrity_constraint_violation',
          hint = 'Create a new key for the developer instead.';
end
$$;

create trigger api_keys_keep_revoked before update on public.api_keys
  for each row
  when (old.revoked_at is not null and (new.revoked_at is distinct from old.revoked_at or new.hash <> old.hash))
  execute function public.api_keys_keep_revoked();

-- A change to what a key may do is announced by a row, which servers look for every second. A notification makes them
-- look at once. PostgreSQL cannot commit a transaction that notifies while its queue is full, and any role that may
-- connect can fill the queue. A change therefore sends no notification while the queue is more than half full; from
-- then on PostgreSQL logs warnings, too.

-- One row for each transaction that changed callers, as long as servers may still need it. A server compares the rows
-- with the snapshot of its last look, so a transaction that commits late is not overlooked. The table is unlogged
-- because a restart ends the connections of all servers, which then begin anew, because the numbers mean nothing in
-- another cluster, and because logical replication leaves unlogged tables out.
create unlogged table public.caller_changes (
  txid xid8 primary key default pg_current_xact_id()
);

-- It runs as its owner, so that a role that may change keys needs no further rights.
create function public.announce_callers_changed() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- Servers apply a revocation once it is committed, so no crash may undo the commit. Any role may turn this off.
  if current_setting('synchronous_commit') not in ('on', 'remote_apply') then
    perform set_config('synchronous_commit', 'on', true);
  end if;
  insert into public.caller_changes default values on conflict do nothing;
  if not found then
    return null;
  end if;
  -- Removes rows that were committed before: a server that lacks one of them lacks the new row as well. A transaction
  -- of a stricter isolation level would fail if another one had removed a row.
  if current_setting('transaction_isolation') = 'read committed' then
    delete from public.caller_changes where txid = any (array(
      select txid from public.caller_changes where txid <> pg_current_xact_id() for update skip locked));
  end if;
  if pg_notification_queue_usage() < 0.5 then
    perform pg_notify('catalog_callers', '');
  end if;
  return null;
end
$$;

-- Not when a key was last used, which is written all the time.
create trigger announce_changed after update on public.api_keys
  for each row
  when ((old.id, old.prefix, old.hash, old.developer_id, old.plan_id, old.revoked_at, old.expires_at)
        is distinct from (new.id, new.prefix, new.hash, new.developer_id, new.plan_id, new.revoked_at, new.expires_at))
  execute function public.announce_callers_changed();
create trigger announce_deleted after delete on public.api_keys
  for each row execute function public.announce_callers_changed();
create trigger announce_removed after truncate on public.api_keys
  for each statement execute function public.announce_callers_changed();

-- A developer or a plan that a key belongs to cannot be removed.
create trigger announce_changed after update on public.developers
  for each row when (old.* is distinct from new.*)
  execute function public.announce_callers_changed();
create trigger announce_changed after update on public.plans
  for each row when (old.* is distinct from new.*)
  execute function public.announce_callers_changed();

-- Logical replication and session_replication_role = replica skip triggers that are not "always", and replication
-- also skips statement triggers. The triggers that protect revoked keys and titles, and those that announce changes
-- of callers, are "always" for that reason. The feed's triggers are not: replication could not fire all of them, and
-- a faithful copy keeps its stamps and counts.
alter table public.api_keys
  enable always trigger api_keys_keep_revoked,
  enable always trigger announce_changed,
  enable always trigger announce_deleted,
  enable always trigger announce_removed;
alter table public.developers enable always trigger announce_changed;
alter table public.plans enable always trigger announce_changed;
