-- Which requests failed and why: the latest of each developer, for a few days. Servers keep at most one a second for
-- each developer and write them in batches, so a client that fails ten thousand times a second adds no more rows than
-- one that fails once.

create table public.failed_requests (
  id bigint generated always as identity primary key,
  developer_id integer not null references public.developers (id) on delete cascade,
  key_id integer not null references public.api_keys (id) on delete cascade,
  at timestamptz not null,
  -- As in the answer and the log.
  request_id text not null,
  method text not null,
  -- The path with what the log has of the query. It holds no key.
  path text not null,
  -- The operation's id in the contract; empty for any other path.
  operation text not null,
  status smallint not null,
  code text not null,
  detail text not null,
  duration_ms double precision not null
);

create index failed_requests_developer on public.failed_requests (developer_id, at desc, id desc);
create index failed_requests_key on public.failed_requests (key_id);
create index failed_requests_at on public.failed_requests (at);
