-- Made from the migrations by "make generate"; not to be edited.

create sequence titles_last_stamp as bigint start 0 minvalue 0;

create table api_key_outcomes (
  key_id integer not null,
  hour timestamp with time zone not null,
  operation text not null,
  outcome text not null,
  requests bigint not null,
  constraint api_key_outcomes_hour_finite CHECK (isfinite(hour)),
  constraint api_key_outcomes_hour_whole CHECK ((hour = date_trunc('hour'::text, hour, 'UTC'::text))),
  constraint api_key_outcomes_key_id_fkey FOREIGN KEY (key_id) REFERENCES api_keys(id) ON DELETE CASCADE,
  constraint api_key_outcomes_pkey PRIMARY KEY (key_id, hour, operation, outcome)
) with (fillfactor=50);

create table api_key_usage (
  key_id integer not null,
  hour timestamp with time zone not null,
  served bigint not null,
  refused bigint not null,
  failed bigint not null,
  rejected bigint default 0 not null,
  constraint api_key_usage_hour_finite CHECK (isfinite(hour)),
  constraint api_key_usage_hour_whole CHECK ((hour = date_trunc('hour'::text, hour, 'UTC'::text))),
  constraint api_key_usage_key_id_fkey FOREIGN KEY (key_id) REFERENCES api_keys(id) ON DELETE CASCADE,
  constraint api_key_usage_pkey PRIMARY KEY (key_id, hour)
);

create table api_keys (
  id integer generated always as identity not null,
  prefix text collate "C" not null,
  hash bytea not null,
  developer_id integer not null,
  plan_id text collate "C" not null,
  label text,
  created_at timestamp with time zone default now() not null,
  last_used_at timestamp with time zone,
  revoked_at timestamp with time zone,
  expires_at timestamp with time zone,
  successor_id integer,
  form_hash bytea,
  last_refused_at timestamp with time zone,
  constraint api_keys_created_at_finite CHECK (isfinite(created_at)),
  constraint api_keys_developer_id_fkey FOREIGN KEY (developer_id) REFERENCES developers(id),
  constraint api_keys_expires_at_finite CHECK (isfinite(expires_at)),
  constraint api_keys_form_hash_length CHECK ((octet_length(form_hash) = 32)),
  constraint api_keys_form_unique UNIQUE (developer_id, form_hash),
  constraint api_keys_hash_length CHECK ((octet_length(hash) = 32)),
  constraint api_keys_hash_unique UNIQUE (hash),
  constraint api_keys_label_length CHECK (((char_length(label) >= 1) AND (char_length(label) <= 200))),
  constraint api_keys_last_refused_at_finite CHECK (isfinite(last_refused_at)),
  constraint api_keys_last_used_at_finite CHECK (isfinite(last_used_at)),
  constraint api_keys_pkey PRIMARY KEY (id),
  constraint api_keys_plan_id_fkey FOREIGN KEY (plan_id) REFERENCES plans(id),
  constraint api_keys_prefix_format CHECK ((prefix ~ '^svc_[0-9A-Za-z]{8}$'::text)),
  constraint api_keys_prefix_unique UNIQUE (prefix),
  constraint api_keys_revoked_at_finite CHECK (isfinite(revoked_at)),
  constraint api_keys_successor_id_fkey FOREIGN KEY (successor_id) REFERENCES api_keys(id),
  constraint api_keys_successor_other CHECK ((successor_id <> id)),
  constraint api_keys_successor_unique UNIQUE (successor_id)
) with (fillfactor=80);

create table caller_change_readers (
  singleton boolean default true not null,
  read_until timestamp with time zone not null,
  constraint caller_change_readers_pkey PRIMARY KEY (singleton),
  constraint caller_change_readers_read_until_finite CHECK (isfinite(read_until)),
  constraint caller_change_readers_singleton CHECK (singleton)
);

create unlogged table caller_changes (
  txid xid8 default pg_current_xact_id() not null,
  developer_id integer default 0 not null,
  constraint caller_changes_pkey PRIMARY KEY (txid, developer_id)
) with (vacuum_truncate=off);

create unlogged table caller_changes_horizon (
  singleton boolean default true not null,
  txid xid8 not null,
  set_at timestamp with time zone not null,
  constraint caller_changes_horizon_pkey PRIMARY KEY (singleton),
  constraint caller_changes_horizon_set_at_finite CHECK (isfinite(set_at)),
  constraint caller_changes_horizon_singleton CHECK (singleton)
);

create table catalog_counts (
  singleton boolean default true not null,
  titles bigint default 0 not null,
  movies bigint default 0 not null,
  series bigint default 0 not null,
  available_in_library bigint default 0 not null,
  people bigint default 0 not null,
  collections bigint default 0 not null,
  updated_by xid8 default '0'::xid8 not null,
  has_waiting boolean default false not null,
  newest_stamp timestamp with time zone,
  constraint catalog_counts_newest_stamp_finite CHECK (isfinite(newest_stamp)),
  constraint catalog_counts_pkey PRIMARY KEY (singleton),
  constraint catalog_counts_singleton CHECK (singleton)
) with (fillfactor=10);

create table catalog_counts_waiting (
  added bigint[] not null,
  is_first boolean default true not null,
  constraint settle_counts TRIGGER DEFERRABLE INITIALLY DEFERRED
);

create table catalog_feed (
  singleton boolean default true not null,
  feed_start timestamp with time zone default '1970-01-01 00:00:00+00'::timestamp with time zone not null,
  identity uuid default gen_random_uuid() not null,
  constraint catalog_feed_feed_start_finite CHECK (isfinite(feed_start)),
  constraint catalog_feed_pkey PRIMARY KEY (singleton),
  constraint catalog_feed_singleton CHECK (singleton),
  constraint catalog_feed_start_whole CHECK ((feed_start = date_trunc('second'::text, feed_start)))
);

create table collections (
  svc_id text collate "C" not null,
  name text not null,
  constraint collections_name_length CHECK (((char_length(name) >= 1) AND (char_length(name) <= 1000))),
  constraint collections_pkey PRIMARY KEY (svc_id),
  constraint collections_svc_id_format CHECK (((svc_id ~ '^[A-Za-z0-9_-]+$'::text) AND (octet_length(svc_id) <= 64)))
);

create table developer_usage (
  developer_id integer not null,
  period text collate "C" not null,
  start timestamp with time zone not null,
  served bigint not null,
  rejected bigint not null,
  refused bigint not null,
  failed bigint not null,
  constraint developer_usage_period_known CHECK ((period = ANY (ARRAY['hour'::text, 'day'::text, '30 days'::text]))),
  constraint developer_usage_pkey PRIMARY KEY (developer_id, period, start),
  constraint developer_usage_start_finite CHECK (isfinite(start))
) with (fillfactor=50);

create table developers (
  id integer generated always as identity not null,
  project_name text not null,
  attribution_required boolean default false not null,
  suspended_at timestamp with time zone,
  created_at timestamp with time zone default now() not null,
  plan_id text collate "C" default 'free'::text not null,
  constraint developers_created_at_finite CHECK (isfinite(created_at)),
  constraint developers_pkey PRIMARY KEY (id),
  constraint developers_plan_id_fkey FOREIGN KEY (plan_id) REFERENCES plans(id),
  constraint developers_project_name_length CHECK (((char_length(project_name) >= 1) AND (char_length(project_name) <= 200))),
  constraint developers_suspended_at_finite CHECK (isfinite(suspended_at))
) with (fillfactor=90);

create table events (
  id bigint generated always as identity not null,
  at timestamp with time zone default now() not null,
  developer_id integer not null,
  kind text collate "C" not null,
  actor text collate "C" not null,
  key_prefix text collate "C",
  details jsonb default '{}'::jsonb not null,
  constraint events_actor_known CHECK ((actor = ANY (ARRAY['developer'::text, 'operator'::text, 'finder'::text, 'system'::text]))),
  constraint events_at_finite CHECK (isfinite(at)),
  constraint events_kind_format CHECK ((kind ~ '^[a-z]+(_[a-z]+)*$'::text)),
  constraint events_pkey PRIMARY KEY (id)
);

create table failed_requests (
  id bigint generated always as identity not null,
  developer_id integer not null,
  key_id integer not null,
  at timestamp with time zone not null,
  request_id text not null,
  method text not null,
  path text not null,
  operation text not null,
  status smallint not null,
  code text not null,
  detail text not null,
  duration_ms double precision not null,
  constraint failed_requests_at_finite CHECK (isfinite(at)),
  constraint failed_requests_developer_id_fkey FOREIGN KEY (developer_id) REFERENCES developers(id) ON DELETE CASCADE,
  constraint failed_requests_key_id_fkey FOREIGN KEY (key_id) REFERENCES api_keys(id) ON DELETE CASCADE,
  constraint failed_requests_pkey PRIMARY KEY (id)
);

create table identities (
  issuer text collate "C" not null,
  subject text collate "C" not null,
  developer_id integer not null,
  created_at timestamp with time zone default now() not null,
  constraint identities_created_at_finite CHECK (isfinite(created_at)),
  constraint identities_developer_id_fkey FOREIGN KEY (developer_id) REFERENCES developers(id) ON DELETE CASCADE,
  constraint identities_issuer_length CHECK (((char_length(issuer) >= 1) AND (char_length(issuer) <= 500))),
  constraint identities_pkey PRIMARY KEY (issuer, subject),
  constraint identities_subject_length CHECK (((char_length(subject) >= 1) AND (char_length(subject) <= 255)))
);

create table jobs (
  name text collate "C" not null,
  done_at timestamp with time zone not null,
  constraint jobs_done_at_finite CHECK (isfinite(done_at)),
  constraint jobs_pkey PRIMARY KEY (name)
);

create table notices (
  id uuid default gen_random_uuid() not null,
  type text collate "C" not null,
  subject text collate "C" not null,
  occurred_at timestamp with time zone default now() not null,
  data jsonb not null,
  created_at timestamp with time zone default now() not null,
  attempts integer default 0 not null,
  next_attempt_at timestamp with time zone default now() not null,
  delivered_at timestamp with time zone,
  given_up_at timestamp with time zone,
  constraint notices_created_at_finite CHECK (isfinite(created_at)),
  constraint notices_delivered_at_finite CHECK (isfinite(delivered_at)),
  constraint notices_given_up_at_finite CHECK (isfinite(given_up_at)),
  constraint notices_next_attempt_at_finite CHECK (isfinite(next_attempt_at)),
  constraint notices_occurred_at_finite CHECK (isfinite(occurred_at)),
  constraint notices_pkey PRIMARY KEY (id),
  constraint notices_type_format CHECK ((type ~ '^[a-z]+[.][a-z_]+$'::text))
);

create table passkey_challenges (
  hash bytea not null,
  session_id integer,
  expires_at timestamp with time zone not null,
  constraint passkey_challenges_expires_at_finite CHECK (isfinite(expires_at)),
  constraint passkey_challenges_hash_length CHECK ((octet_length(hash) = 32)),
  constraint passkey_challenges_pkey PRIMARY KEY (hash),
  constraint passkey_challenges_session_id_fkey FOREIGN KEY (session_id) REFERENCES sessions(id) ON DELETE CASCADE
);

create table passkeys (
  id integer generated always as identity not null,
  developer_id integer not null,
  credential_id bytea not null,
  public_key bytea not null,
  sign_count bigint not null,
  transports text[] not null,
  is_synced boolean not null,
  name text not null,
  created_at timestamp with time zone default now() not null,
  last_used_at timestamp with time zone,
  constraint passkeys_created_at_finite CHECK (isfinite(created_at)),
  constraint passkeys_credential_id_length CHECK (((octet_length(credential_id) >= 1) AND (octet_length(credential_id) <= 1023))),
  constraint passkeys_credential_id_unique UNIQUE (credential_id),
  constraint passkeys_developer_id_fkey FOREIGN KEY (developer_id) REFERENCES developers(id) ON DELETE CASCADE,
  constraint passkeys_last_used_at_finite CHECK (isfinite(last_used_at)),
  constraint passkeys_name_length CHECK (((char_length(name) >= 1) AND (char_length(name) <= 100))),
  constraint passkeys_pkey PRIMARY KEY (id),
  constraint passkeys_public_key_length CHECK (((octet_length(public_key) >= 1) AND (octet_length(public_key) <= 4096))),
  constraint passkeys_sign_count_range CHECK (((sign_count >= 0) AND (sign_count <= '4294967295'::bigint))),
  constraint passkeys_transports_count CHECK ((cardinality(transports) <= 10))
);

create table people (
  svc_id text collate "C" not null,
  name text not null,
  constraint people_name_length CHECK (((char_length(name) >= 1) AND (char_length(name) <= 1000))),
  constraint people_pkey PRIMARY KEY (svc_id),
  constraint people_svc_id_format CHECK (((svc_id ~ '^[A-Za-z0-9_-]+$'::text) AND (octet_length(svc_id) <= 64)))
);

create table plans (
  id text collate "C" not null,
  name text not null,
  requests_per_minute integer not null,
  requests_per_day integer not null,
  commercial_use boolean not null,
  created_at timestamp with time zone default now() not null,
  constraint plans_created_at_finite CHECK (isfinite(created_at)),
  constraint plans_id_format CHECK ((id ~ '^[a-z][a-z0-9_-]{0,31}$'::text)),
  constraint plans_name_length CHECK (((char_length(name) >= 1) AND (char_length(name) <= 100))),
  constraint plans_pkey PRIMARY KEY (id),
  constraint plans_requests_per_day_positive CHECK ((requests_per_day >= 1)),
  constraint plans_requests_per_minute_positive CHECK ((requests_per_minute >= 1))
);

create table sessions (
  id integer generated always as identity not null,
  hash bytea not null,
  developer_id integer not null,
  user_agent text not null,
  signed_in_at timestamp with time zone default now() not null,
  last_seen_at timestamp with time zone default now() not null,
  constraint sessions_developer_id_fkey FOREIGN KEY (developer_id) REFERENCES developers(id) ON DELETE CASCADE,
  constraint sessions_hash_length CHECK ((octet_length(hash) = 32)),
  constraint sessions_hash_unique UNIQUE (hash),
  constraint sessions_last_seen_at_finite CHECK (isfinite(last_seen_at)),
  constraint sessions_pkey PRIMARY KEY (id),
  constraint sessions_signed_in_at_finite CHECK (isfinite(signed_in_at)),
  constraint sessions_user_agent_length CHECK ((char_length(user_agent) <= 300))
) with (fillfactor=80);

create table sign_in_links (
  hash bytea not null,
  developer_id integer,
  expires_at timestamp with time zone not null,
  kind text default 'developer'::text not null,
  constraint sign_in_links_developer CHECK (((kind = 'developer'::text) = (developer_id IS NOT NULL))),
  constraint sign_in_links_developer_id_fkey FOREIGN KEY (developer_id) REFERENCES developers(id) ON DELETE CASCADE,
  constraint sign_in_links_expires_at_finite CHECK (isfinite(expires_at)),
  constraint sign_in_links_hash_length CHECK ((octet_length(hash) = 32)),
  constraint sign_in_links_kind CHECK ((kind = ANY (ARRAY['developer'::text, 'operator'::text]))),
  constraint sign_in_links_pkey PRIMARY KEY (hash)
);

create table sign_ups (
  hash bytea not null,
  issuer text collate "C" not null,
  subject text collate "C" not null,
  expires_at timestamp with time zone not null,
  constraint sign_ups_expires_at_finite CHECK (isfinite(expires_at)),
  constraint sign_ups_hash_length CHECK ((octet_length(hash) = 32)),
  constraint sign_ups_pkey PRIMARY KEY (hash)
);

create table spent_sign_ins (
  hash bytea not null,
  expires_at timestamp with time zone not null,
  constraint spent_sign_ins_expires_at_finite CHECK (isfinite(expires_at)),
  constraint spent_sign_ins_hash_length CHECK ((octet_length(hash) = 32)),
  constraint spent_sign_ins_pkey PRIMARY KEY (hash)
);

create table titles (
  svc_id text collate "C" not null,
  media_type text collate "C" not null,
  title text not null,
  has_bundles boolean default false not null,
  available_in_library boolean default false not null,
  created_at timestamp with time zone default ('1970-01-01 00:00:00+00'::timestamp with time zone + ((
CASE (nextval('titles_last_stamp'::regclass) % (10)::bigint)
    WHEN 0 THEN nextval('titles_last_stamp'::regclass)
    ELSE currval('titles_last_stamp'::regclass)
END)::double precision * '00:00:00.000001'::interval)) not null,
  updated_at timestamp with time zone default ('1970-01-01 00:00:00+00'::timestamp with time zone + ((currval('titles_last_stamp'::regclass))::double precision * '00:00:00.000001'::interval)) not null,
  constraint titles_media_type_known CHECK ((media_type = ANY (ARRAY['movie'::text, 'series'::text]))),
  constraint titles_pkey PRIMARY KEY (svc_id),
  constraint titles_svc_id_format CHECK ((((octet_length(svc_id) >= 1) AND (octet_length(svc_id) <= 64)) AND (svc_id !~ '[^A-Za-z0-9_-]'::text))),
  constraint titles_title_length CHECK (((char_length(title) >= 1) AND (char_length(title) <= 1000))),
  constraint titles_updated_at_unique UNIQUE (updated_at)
);

create table usage_log (
  key_id integer not null,
  hour timestamp with time zone not null,
  operation text not null,
  outcome text not null,
  requests bigint not null,
  constraint usage_log_hour_finite CHECK (isfinite(hour))
) with (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=10000);

create view key_usage as
 SELECT api_key_outcomes.key_id,
    api_key_outcomes.hour,
    api_key_outcomes.operation,
    api_key_outcomes.outcome,
    api_key_outcomes.requests
   FROM api_key_outcomes
UNION ALL
 SELECT usage_log.key_id,
    usage_log.hour,
    usage_log.operation,
    usage_log.outcome,
    usage_log.requests
   FROM usage_log;

CREATE INDEX api_key_outcomes_hour ON public.api_key_outcomes USING btree (hour);

CREATE INDEX api_key_usage_hour ON public.api_key_usage USING btree (hour);

CREATE INDEX api_keys_developer_id ON public.api_keys USING btree (developer_id);

CREATE INDEX api_keys_expiries ON public.api_keys USING btree (expires_at DESC NULLS LAST, id DESC NULLS LAST) WHERE (expires_at IS NOT NULL);

CREATE INDEX api_keys_expiries_of_developer ON public.api_keys USING btree (developer_id, expires_at, id) WHERE (expires_at IS NOT NULL);

CREATE INDEX developer_usage_start ON public.developer_usage USING btree (period, start);

CREATE INDEX events_at ON public.events USING btree (at DESC NULLS LAST, id DESC NULLS LAST);

CREATE INDEX events_developer_id ON public.events USING btree (developer_id, at, id);

CREATE INDEX events_key_prefix ON public.events USING btree (key_prefix, at, id) WHERE (key_prefix IS NOT NULL);

CREATE INDEX failed_requests_at ON public.failed_requests USING btree (at);

CREATE INDEX failed_requests_developer ON public.failed_requests USING btree (developer_id, at DESC, id DESC);

CREATE INDEX failed_requests_kind ON public.failed_requests USING btree (key_id, code, operation, at DESC, id DESC);

CREATE INDEX identities_developer_id ON public.identities USING btree (developer_id);

CREATE UNIQUE INDEX notices_once_a_day ON public.notices USING btree (subject, (((occurred_at AT TIME ZONE 'UTC'::text))::date));

CREATE INDEX notices_pending ON public.notices USING btree (next_attempt_at) WHERE ((delivered_at IS NULL) AND (given_up_at IS NULL));

CREATE INDEX notices_subject ON public.notices USING btree (subject, occurred_at);

CREATE INDEX passkey_challenges_expires_at ON public.passkey_challenges USING btree (expires_at);

CREATE INDEX passkey_challenges_session_id ON public.passkey_challenges USING btree (session_id);

CREATE INDEX passkeys_developer_id ON public.passkeys USING btree (developer_id);

CREATE INDEX sessions_developer_id ON public.sessions USING btree (developer_id);

CREATE INDEX sign_in_links_developer_id ON public.sign_in_links USING btree (developer_id);

CREATE INDEX sign_in_links_expires_at ON public.sign_in_links USING btree (expires_at);

CREATE INDEX sign_ups_expires_at ON public.sign_ups USING btree (expires_at);

CREATE INDEX spent_sign_ins_expires_at ON public.spent_sign_ins USING btree (expires_at);

CREATE INDEX usage_log_key ON public.usage_log USING btree (key_id);

CREATE OR REPLACE FUNCTION public.announce_callers_changed()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  developer integer := 0;
  -- How many rows the transaction has written. Anybody may set it, which at worst announces a change of everything.
  written integer := coalesce(substring(current_setting('catalog.announced', true) from '^\d{1,6}$')::integer, 0);
begin
  -- Servers apply a revocation once it is committed, so no crash may undo the commit. Any role may turn this off.
  if current_setting('synchronous_commit') not in ('on', 'remote_apply') then
    perform set_config('synchronous_commit', 'on', true);
  end if;
  -- After so many developers, the transaction has changed everything: servers need not read a row for each.
  if tg_level = 'ROW' and written < 1000 then
    if tg_table_name = 'api_keys' then
      developer := old.developer_id;
    elsif tg_table_name = 'developers' then
      developer := old.id;
    end if;
  end if;
  insert into public.caller_changes (developer_id) values (developer) on conflict do nothing;
  if found then
    perform set_config('catalog.announced', (written + 1)::text, true);
  end if;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.api_keys_keep_revoked()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  raise exception 'key % is revoked, and a revoked key stays revoked', old.prefix
    using errcode = 'integrity_constraint_violation',
          hint = 'Create a new key for the developer instead.';
end
$function$;

CREATE OR REPLACE FUNCTION public.api_keys_require_plan()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
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
$function$;

CREATE OR REPLACE FUNCTION public.caller_changes_remove_old()
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  removed integer;
  oldest_running xid8 := pg_snapshot_xmin(pg_current_snapshot());
begin
  delete from public.caller_changes where ctid = any (array(
    select c.ctid from public.caller_changes c join public.caller_changes_horizon h on c.txid < h.txid
     where h.txid <= oldest_running and h.set_at < clock_timestamp() - interval '5 minutes'
     limit 1000 for update of c skip locked));
  get diagnostics removed = row_count;
  if removed < 1000 then
    insert into public.caller_changes_horizon as h (txid, set_at) values (oldest_running, clock_timestamp())
    on conflict (singleton) do update set txid = excluded.txid, set_at = excluded.set_at
     where h.set_at < clock_timestamp() - interval '5 minutes' or h.txid > oldest_running;
  end if;
  return removed;
end
$function$;

CREATE OR REPLACE FUNCTION public.catalog_count_deleted()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  perform public.catalog_count_other(tg_table_name, -(select count(*) from old_rows));
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.catalog_count_inserted()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  perform public.catalog_count_other(tg_table_name, (select count(*) from new_rows));
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.catalog_count_other(counter name, added bigint)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  if added <> 0 then
    perform public.catalog_counts_note(case counter when 'people' then array[0, 0, 0, 0, added, 0]
                                              when 'collections' then array[0, 0, 0, 0, 0, added] end);
  end if;
end
$function$;

CREATE OR REPLACE FUNCTION public.catalog_count_truncated()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  counter integer := case tg_table_name when 'people' then 5 else 6 end;
  counted bigint := (select case tg_table_name when 'people' then people else collections end from public.catalog_counts);
  waiting bigint := (select coalesce(sum(added[counter]), 0) from public.catalog_counts_waiting);
begin
  perform public.catalog_count_other(tg_table_name, -counted - waiting);
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.catalog_counts_add(added bigint[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  update public.catalog_counts set
    titles = titles + added[1],
    movies = movies + added[2],
    series = series + added[3],
    available_in_library = available_in_library + added[4],
    people = people + added[5],
    collections = collections + added[6],
    newest_stamp = (select timestamptz 'epoch' + last_value * interval '1 microsecond' from public.titles_last_stamp),
    updated_by = pg_current_xact_id(),
    has_waiting = false;
end
$function$;

CREATE OR REPLACE FUNCTION public.catalog_counts_note(added bigint[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  is_first boolean;
begin
  select not has_waiting into is_first from public.catalog_counts where updated_by = pg_current_xact_id();
  if not found then
    perform public.catalog_counts_add(added);
    return;
  end if;
  if is_first then
    update public.catalog_counts set has_waiting = true;
  elsif added = '{0,0,0,0,0,0}' then
    return;
  end if;
  insert into public.catalog_counts_waiting (added, is_first) values (added, is_first);
end
$function$;

CREATE OR REPLACE FUNCTION public.catalog_counts_settle()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  total bigint[];
begin
  with waiting as (delete from public.catalog_counts_waiting returning added)
  select array[sum(added[1]), sum(added[2]), sum(added[3]), sum(added[4]), sum(added[5]), sum(added[6])]
    into total from waiting;
  if total[1] is not null then
    perform public.catalog_counts_add(total);
  end if;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.catalog_lock_writers()
 RETURNS void
 LANGUAGE sql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
  select pg_advisory_xact_lock(x'66656564'::integer, 1)
$function$;

CREATE OR REPLACE FUNCTION public.catalog_quiet_clock()
 RETURNS timestamp with time zone
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  clock timestamptz := clock_timestamp();
begin
  if exists (
    select from pg_locks
    where locktype = 'advisory'
      and database = (select oid from pg_database where datname = current_database())
      and classid = x'66656564'::integer::oid and objid = 1 and objsubid = 2
  ) then
    return null;
  end if;
  return clock;
end
$function$;

CREATE OR REPLACE FUNCTION public.catalog_take_writer_lock()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  perform pg_advisory_xact_lock(x'66656564'::integer, 1);
  -- Mirrors may have an entry as soon as it is committed, so no crash may undo the commit. Any role may turn this off.
  if current_setting('synchronous_commit') not in ('on', 'remote_apply') then
    perform set_config('synchronous_commit', 'on', true);
  end if;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.events_of_developer()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
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
$function$;

CREATE OR REPLACE FUNCTION public.events_of_identity()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
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
$function$;

CREATE OR REPLACE FUNCTION public.events_of_key()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
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
$function$;

CREATE OR REPLACE FUNCTION public.events_of_passkey()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  if tg_op = 'INSERT' then
    perform public.events_record(new.developer_id, 'passkey_added', null, jsonb_build_object('name', new.name));
  else
    perform public.events_record(old.developer_id, 'passkey_removed', null, jsonb_build_object('name', old.name));
  end if;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.events_record(event_developer_id integer, event_kind text, event_key_prefix text, event_details jsonb)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET lock_timeout TO '100ms'
AS $function$
declare
  actor text := current_setting('catalog.actor', true);
begin
  insert into public.events (developer_id, kind, actor, key_prefix, details)
  values (event_developer_id, event_kind,
          case when actor in ('developer', 'finder', 'system') then actor else 'operator' end,
          event_key_prefix, jsonb_strip_nulls(event_details));
exception when others then
  raise warning 'the event "%" of developer % could not be recorded: %', event_kind, event_developer_id, sqlerrm
    using errcode = '01CAT';
end
$function$;

CREATE OR REPLACE FUNCTION public.events_remove_old()
 RETURNS integer
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
  with removed as (
    delete from public.events where id = any (array(
      select id from public.events
       where id in (select id from public.events order by id limit 1000) and at < now() - interval '400 days'
       for update skip locked))
    returning id
  )
  select count(*)::integer from removed
$function$;

CREATE OR REPLACE FUNCTION public.events_time(at timestamp with time zone)
 RETURNS text
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
  select to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$function$;

CREATE OR REPLACE FUNCTION public.notices_record_leak()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET lock_timeout TO '100ms'
AS $function$
begin
  insert into public.notices (type, subject, data)
  values ('key.leaked', 'key.leaked ' || new.prefix,
          jsonb_build_object('key_prefix', new.prefix, 'developer_id', new.developer_id))
  on conflict do nothing;
  return null;
exception when others then
  raise warning 'the notice of the leaked key % could not be recorded: %', new.prefix, sqlerrm
    using errcode = '01CAT';
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.titles_count_inserted()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  added bigint[];
begin
  select array[count(*),
               count(*) filter (where media_type = 'movie'),
               count(*) filter (where media_type = 'series'),
               count(*) filter (where available_in_library), 0, 0]
    into added from new_rows;
  if added[1] > 0 then
    perform public.catalog_counts_note(added);
  end if;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.titles_count_updated()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  added bigint[];
begin
  select array[0,
               coalesce(sum(sign) filter (where media_type = 'movie'), 0),
               coalesce(sum(sign) filter (where media_type = 'series'), 0),
               coalesce(sum(sign) filter (where available_in_library), 0), 0, 0]
    into added
    from (
      select 1 as sign, media_type, available_in_library from new_rows
      union all
      select -1, media_type, available_in_library from old_rows
    ) signed;
  if exists (select from new_rows) then
    perform public.catalog_counts_note(added);
  end if;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.titles_follow_clock()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  clock bigint := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
begin
  perform setval('public.titles_last_stamp', (greatest(clock, last_value) + 9) / 10 * 10) from public.titles_last_stamp;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.titles_forget_newest_stamp()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  update public.catalog_counts set newest_stamp = null where newest_stamp is not null;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.titles_refuse_removal()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  raise exception 'titles cannot be removed: the feed of changes has no way to announce it'
    using errcode = 'feature_not_supported',
          hint = 'Set available_in_library to false instead.';
end
$function$;

CREATE OR REPLACE FUNCTION public.titles_stamp_inserted()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  new.created_at := timestamptz 'epoch'
    + case nextval('public.titles_last_stamp') % 10
        when 0 then nextval('public.titles_last_stamp')
        else currval('public.titles_last_stamp')
      end * interval '1 microsecond';
  new.updated_at := new.created_at;
  return new;
end
$function$;

CREATE OR REPLACE FUNCTION public.titles_stamp_updated()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  if new.svc_id <> old.svc_id then
    raise exception 'svc_id of a title cannot change (% to %)', old.svc_id, new.svc_id
      using errcode = 'integrity_constraint_violation',
            hint = 'Mirrors know a title by its svc_id. Insert a new title instead.';
  end if;
  new.created_at := old.created_at;
  new.updated_at := old.updated_at;
  if new is not distinct from old then
    return null; -- a row that an update leaves the same is not a change
  end if;
  new.updated_at := timestamptz 'epoch'
    + case nextval('public.titles_last_stamp') % 10
        when 0 then nextval('public.titles_last_stamp')
        else currval('public.titles_last_stamp')
      end * interval '1 microsecond';
  return new;
end
$function$;

CREATE TRIGGER announce_changed AFTER UPDATE ON public.api_keys FOR EACH ROW WHEN ((((((((old.id IS DISTINCT FROM new.id) OR (old.prefix IS DISTINCT FROM new.prefix)) OR (old.hash IS DISTINCT FROM new.hash)) OR (old.developer_id IS DISTINCT FROM new.developer_id)) OR (old.plan_id IS DISTINCT FROM new.plan_id)) OR (old.revoked_at IS DISTINCT FROM new.revoked_at)) OR (old.expires_at IS DISTINCT FROM new.expires_at))) EXECUTE FUNCTION announce_callers_changed();

CREATE TRIGGER announce_deleted AFTER DELETE ON public.api_keys FOR EACH ROW EXECUTE FUNCTION announce_callers_changed();

CREATE TRIGGER announce_removed AFTER TRUNCATE ON public.api_keys FOR EACH STATEMENT EXECUTE FUNCTION announce_callers_changed();

CREATE TRIGGER api_keys_keep_revoked BEFORE UPDATE ON public.api_keys FOR EACH ROW WHEN (((old.revoked_at IS NOT NULL) AND ((new.revoked_at IS DISTINCT FROM old.revoked_at) OR (new.hash <> old.hash)))) EXECUTE FUNCTION api_keys_keep_revoked();

CREATE TRIGGER record_changed AFTER UPDATE ON public.api_keys FOR EACH ROW WHEN ((((((old.plan_id IS DISTINCT FROM new.plan_id) OR (old.label IS DISTINCT FROM new.label)) OR (old.revoked_at IS DISTINCT FROM new.revoked_at)) OR (old.expires_at IS DISTINCT FROM new.expires_at)) OR (old.successor_id IS DISTINCT FROM new.successor_id))) EXECUTE FUNCTION events_of_key();

CREATE TRIGGER record_created AFTER INSERT ON public.api_keys FOR EACH ROW EXECUTE FUNCTION events_of_key();

CREATE TRIGGER record_leak AFTER UPDATE ON public.api_keys FOR EACH ROW WHEN (((old.revoked_at IS NULL) AND (new.revoked_at IS NOT NULL) AND (current_setting('catalog.actor'::text, true) = 'finder'::text))) EXECUTE FUNCTION notices_record_leak();

CREATE TRIGGER require_plan BEFORE INSERT ON public.api_keys FOR EACH ROW EXECUTE FUNCTION api_keys_require_plan();

CREATE CONSTRAINT TRIGGER settle_counts AFTER INSERT ON public.catalog_counts_waiting DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (new.is_first) EXECUTE FUNCTION catalog_counts_settle();

CREATE TRIGGER announce_restarted AFTER INSERT OR UPDATE ON public.catalog_feed FOR EACH ROW EXECUTE FUNCTION announce_callers_changed();

CREATE TRIGGER a_take_writer_lock BEFORE INSERT OR DELETE OR UPDATE OR TRUNCATE ON public.collections FOR EACH STATEMENT EXECUTE FUNCTION catalog_take_writer_lock();

CREATE TRIGGER count_deleted AFTER DELETE ON public.collections REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION catalog_count_deleted();

CREATE TRIGGER count_inserted AFTER INSERT ON public.collections REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION catalog_count_inserted();

CREATE TRIGGER count_truncated AFTER TRUNCATE ON public.collections FOR EACH STATEMENT EXECUTE FUNCTION catalog_count_truncated();

CREATE TRIGGER announce_changed AFTER UPDATE ON public.developers FOR EACH ROW WHEN (((((old.id IS DISTINCT FROM new.id) OR (old.project_name IS DISTINCT FROM new.project_name)) OR (old.attribution_required IS DISTINCT FROM new.attribution_required)) OR (old.suspended_at IS DISTINCT FROM new.suspended_at))) EXECUTE FUNCTION announce_callers_changed();

CREATE TRIGGER record_changed AFTER UPDATE ON public.developers FOR EACH ROW WHEN ((((old.project_name IS DISTINCT FROM new.project_name) OR (old.plan_id IS DISTINCT FROM new.plan_id)) OR (old.suspended_at IS DISTINCT FROM new.suspended_at))) EXECUTE FUNCTION events_of_developer();

CREATE TRIGGER record_created AFTER INSERT ON public.developers FOR EACH ROW EXECUTE FUNCTION events_of_developer();

CREATE TRIGGER record_linked AFTER INSERT OR DELETE ON public.identities FOR EACH ROW EXECUTE FUNCTION events_of_identity();

CREATE TRIGGER record_added AFTER INSERT OR DELETE ON public.passkeys FOR EACH ROW EXECUTE FUNCTION events_of_passkey();

CREATE TRIGGER a_take_writer_lock BEFORE INSERT OR DELETE OR UPDATE OR TRUNCATE ON public.people FOR EACH STATEMENT EXECUTE FUNCTION catalog_take_writer_lock();

CREATE TRIGGER count_deleted AFTER DELETE ON public.people REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION catalog_count_deleted();

CREATE TRIGGER count_inserted AFTER INSERT ON public.people REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION catalog_count_inserted();

CREATE TRIGGER count_truncated AFTER TRUNCATE ON public.people FOR EACH STATEMENT EXECUTE FUNCTION catalog_count_truncated();

CREATE TRIGGER announce_changed AFTER UPDATE ON public.plans FOR EACH ROW WHEN ((old.* IS DISTINCT FROM new.*)) EXECUTE FUNCTION announce_callers_changed();

CREATE TRIGGER a_take_writer_lock BEFORE INSERT OR UPDATE ON public.titles FOR EACH STATEMENT EXECUTE FUNCTION catalog_take_writer_lock();

CREATE TRIGGER b_follow_clock BEFORE INSERT OR UPDATE ON public.titles FOR EACH STATEMENT EXECUTE FUNCTION titles_follow_clock();

CREATE TRIGGER count_inserted AFTER INSERT ON public.titles REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION titles_count_inserted();

CREATE TRIGGER count_updated AFTER UPDATE ON public.titles REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION titles_count_updated();

CREATE TRIGGER forget_newest_stamp AFTER INSERT OR UPDATE ON public.titles FOR EACH ROW EXECUTE FUNCTION titles_forget_newest_stamp();

CREATE TRIGGER refuse_removal BEFORE DELETE OR TRUNCATE ON public.titles FOR EACH STATEMENT EXECUTE FUNCTION titles_refuse_removal();

CREATE TRIGGER refuse_removal_of_row BEFORE DELETE ON public.titles FOR EACH ROW EXECUTE FUNCTION titles_refuse_removal();

CREATE TRIGGER stamp_inserted BEFORE INSERT ON public.titles FOR EACH ROW WHEN ((((currval('titles_last_stamp'::regclass) % (10)::bigint) = 0) OR (new.updated_at IS DISTINCT FROM ('1970-01-01 00:00:00+00'::timestamp with time zone + ((currval('titles_last_stamp'::regclass))::double precision * '00:00:00.000001'::interval))) OR (new.created_at IS DISTINCT FROM new.updated_at))) EXECUTE FUNCTION titles_stamp_inserted();

CREATE TRIGGER stamp_updated BEFORE UPDATE ON public.titles FOR EACH ROW EXECUTE FUNCTION titles_stamp_updated();

alter table api_keys enable always trigger announce_changed;

alter table api_keys enable always trigger announce_deleted;

alter table api_keys enable always trigger announce_removed;

alter table api_keys enable always trigger api_keys_keep_revoked;

alter table developers enable always trigger announce_changed;

alter table plans enable always trigger announce_changed;

alter table titles enable replica trigger forget_newest_stamp;

alter table titles enable always trigger refuse_removal;

alter table titles enable always trigger refuse_removal_of_row;

grant execute on function caller_changes_remove_old() to catalog_server;

grant execute on function catalog_lock_writers() to pg_write_all_data;

grant execute on function catalog_quiet_clock() to catalog_server;

grant execute on function catalog_quiet_clock() to pg_read_all_data;

grant execute on function events_remove_old() to catalog_server;
