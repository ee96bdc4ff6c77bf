-- Who may open the developer settings and the operator pages. No table here holds what opens them: tokens are kept as
-- their SHA-256, and each has 256 random bits. All times are the database's, so that servers agree on what has expired.

-- A link that signs somebody in, once. The row is removed when it does. The session of an operator lives in the memory
-- of the server, so that it outlasts an outage of the database.
create table public.sign_in_links (
  hash bytea primary key
    constraint sign_in_links_hash_length check (octet_length(hash) = 32),
  developer_id integer references public.developers (id) on delete cascade,
  expires_at timestamptz not null,
  kind text not null default 'developer'
    constraint sign_in_links_kind check (kind in ('developer', 'operator')),
  constraint sign_in_links_developer check ((kind = 'developer') = (developer_id is not null))
);

create index sign_in_links_developer_id on public.sign_in_links (developer_id);
create index sign_in_links_expires_at on public.sign_in_links (expires_at);

-- A browser that is signed in. Each sign-in makes a row of its own.
create table public.sessions (
  id integer generated always as identity primary key,
  hash bytea not null
    constraint sessions_hash_unique unique
    constraint sessions_hash_length check (octet_length(hash) = 32),
  developer_id integer not null references public.developers (id) on delete cascade,
  -- What the browser says of itself, so that people tell their sessions apart.
  user_agent text not null
    constraint sessions_user_agent_length check (char_length(user_agent) <= 300),
  signed_in_at timestamptz not null default now(),
  last_seen_at timestamptz not null default now()
);

create index sessions_developer_id on public.sessions (developer_id);
create index sessions_last_seen_at on public.sessions (last_seen_at);

-- Who a developer is at a provider of identities (OpenID Connect). An address of e-mail can change hands; these two
-- cannot.
create table public.identities (
  issuer text collate "C" not null
    constraint identities_issuer_length check (char_length(issuer) between 1 and 500),
  subject text collate "C" not null
    constraint identities_subject_length check (char_length(subject) between 1 and 255),
  developer_id integer not null references public.developers (id) on delete cascade,
  created_at timestamptz not null default now(),
  primary key (issuer, subject)
);

create index identities_developer_id on public.identities (developer_id);

-- An identity that a provider has confirmed and that belongs to no developer yet. Its browser names a project next.
create table public.sign_ups (
  hash bytea primary key
    constraint sign_ups_hash_length check (octet_length(hash) = 32),
  issuer text collate "C" not null,
  subject text collate "C" not null,
  expires_at timestamptz not null
);

create index sign_ups_expires_at on public.sign_ups (expires_at);

-- The secret of a sign-in at the provider that has come back. A browser keeps it for the same time, and it is spent
-- once.
create table public.spent_sign_ins (
  hash bytea primary key
    constraint spent_sign_ins_hash_length check (octet_length(hash) = 32),
  expires_at timestamptz not null
);

create index spent_sign_ins_expires_at on public.spent_sign_ins (expires_at);

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

-- What an authenticator is to sign. The browser has it in a cookie. The row is removed when it is signed.
create table public.passkey_challenges (
  hash bytea primary key
    constraint passkey_challenges_hash_length check (octet_length(hash) = 32),
  -- The session that adds a passkey; null for a sign-in.
  session_id integer references public.sessions (id) on delete cascade,
  expires_at timestamptz not null
);

create index passkey_challenges_session_id on public.passkey_challenges (session_id);
create index passkey_challenges_expires_at on public.passkey_challenges (expires_at);
