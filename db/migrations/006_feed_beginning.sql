-- Where the feed begins. A database may be restored from a backup, or take over without the last commits of its
-- predecessor. It then lacks entries that mirrors have, and no feed can announce that. So "catalog feed restart" sets a
-- beginning after every position that was given until then. The service refuses earlier positions, in the statement that
-- reads the page. A mirror then takes a fresh copy. The command also moves titles_last_stamp up to the beginning. So every
-- entry that is written later lies after it.
create table public.catalog_feed (
  singleton boolean primary key default true constraint catalog_feed_singleton check (singleton),
  -- Whole seconds, so that the position of a client that cuts the decimals off does not fall before the beginning.
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
