-- Who may call: plans, the developers registered for them, and their keys.

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
  created_at timestamptz not null default now()
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
  revoked_at timestamptz
);

create index api_keys_developer_id on public.api_keys (developer_id);

-- A revoked key never works again: not by mistake, and not by a plain UPDATE either.
create function public.api_keys_keep_revoked() returns trigger language plpgsql as $$
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
