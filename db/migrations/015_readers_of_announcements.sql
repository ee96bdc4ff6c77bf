-- Until when servers may read the announcements of changes, and so keep callers in a cache. A server with Redis moves the
-- time on before it opens its cache. Whoever changes a key without Redis waits only if somebody may have cached it.
create table public.caller_change_readers (
  singleton boolean primary key default true constraint caller_change_readers_singleton check (singleton),
  read_until timestamptz not null
);
