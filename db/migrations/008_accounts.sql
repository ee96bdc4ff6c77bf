-- Who may open the developer settings. No table here holds what opens them: tokens are kept as their SHA-256, and each has
-- 256 random bits. All times are the database's, so that servers agree on what has expired.

-- A link that signs a developer in, once. The row is removed when it does.
create table public.sign_in_links (
  hash bytea primary key
    constraint sign_in_links_hash_length check (octet_length(hash) = 32),
  developer_id integer not null references public.developers (id) on delete cascade,
  expires_at timestamptz not null
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

-- Who a developer is at a provider of identities (OpenID Connect). An address of e-mail can change hands; these two cannot.
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
