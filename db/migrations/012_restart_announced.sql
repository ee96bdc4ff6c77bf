-- A restart of the feed follows a restore, or a failover that has lost commits. Servers may have cached keys that are
-- different now, or gone.
create trigger announce_restarted after insert or update on public.catalog_feed
  for each row execute function public.announce_callers_changed();
