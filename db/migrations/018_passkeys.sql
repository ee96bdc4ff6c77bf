-- Passkeys (WebAuthn) sign developers in. Nothing here is secret: private keys never leave the authenticators.

create table public.passkeys (
  id integer generated always as identity primary key,
  developer_id integer not null references public.developers (id) on delete cascade,
  -- Chosen by the authenticator.
  credential_id bytea not null
    constraint passkeys_credential_id_unique unique
    constraint passkeys_credential_id_length check (octet_length(credential_id) between 1 and 1023),
  -- A COSE key (RFC 9052).
  public_key bytea not null
    constraint passkeys_public_key_length check (octet_length(public_key) between 1 and 4096),
  -- How often the authenticator has used the key, as it last reported; 0 for an authenticator that does not count.
  sign_count bigint not null
    constraint passkeys_sign_count_range check (sign_count between 0 and 4294967295),
  -- How browsers reach the authenticator, such as internal or usb.
  transports text[] not null
    constraint passkeys_transports_count check (cardinality(transports) <= 10),
  -- Whether a password manager keeps a copy beyond the device.
  is_synced boolean not null,
  name text not null
    constraint passkeys_name_length check (char_length(name) between 1 and 100),
  created_at timestamptz not null default now(),
  last_used_at timestamptz
);

create index passkeys_developer_id on public.passkeys (developer_id);

-- What an authenticator is to sign, as its SHA-256. The browser has it in a cookie. The row is removed when it is signed.
create table public.passkey_challenges (
  hash bytea primary key
    constraint passkey_challenges_hash_length check (octet_length(hash) = 32),
  -- The session that adds a passkey; null for a sign-in.
  session_id integer references public.sessions (id) on delete cascade,
  expires_at timestamptz not null
);

create index passkey_challenges_session_id on public.passkey_challenges (session_id);
create index passkey_challenges_expires_at on public.passkey_challenges (expires_at);

-- This runs as its owner, like the other triggers that record events.
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

revoke execute on function public.events_of_passkey() from public;

create trigger record_added after insert or delete on public.passkeys
  for each row execute function public.events_of_passkey();

-- Servers are the roles that start sign-ups.
do $$
declare
  role regrole;
begin
  for role in
    select grantee::regrole from pg_class, aclexplode(relacl)
     where pg_class.oid = 'public.sign_ups'::regclass and privilege_type = 'INSERT' and grantee not in (0, relowner)
  loop
    execute format('grant select, insert, update, delete on public.passkeys, public.passkey_challenges to %s', role);
  end loop;
end
$$;
