-- The start of the feed. A database that is restored from a backup, or that takes over without the last commits of
-- its predecessor, lacks entries that mirrors have, and no feed can announce that. "catalog feed restart" therefore
-- sets a start after every position given before, and moves titles_last_stamp up to it, so every later entry lies
-- after it. The service refuses earlier positions, in the statement that reads the page. A mirror then takes a fresh
-- copy.
create table public.catalog_feed (
  singleton boolean primary key default true constraint catalog_feed_singleton check (singleton),
  -- Whole seconds, so that the position of a client that drops the decimals does not fall before the start.
  beginning timestamptz not null default 'epoch'
    constraint catalog_feed_beginning_whole check (beginning = date_trunc('second', beginning))
);

insert into public.catalog_feed default values;

-- Servers read it with each page, and they may run as another role than the owner: one that can read titles.
do $$
declare
  reader text;
begin
  for reader in
    select case grantee when 0 then 'public' else grantee::regrole::text end from pg_class, aclexplode(relacl)
     where pg_class.oid = 'public.titles'::regclass and privilege_type = 'SELECT' and grantee <> relowner
  loop
    execute format('grant select on public.catalog_feed to %s', reader);
  end loop;
end
$$;
