-- A mirror that is led to another database finds positions there that look like its own. Each feed therefore has an
-- identity: random, the same on all replicas, and renewed by "catalog feed restart", after which no earlier position
-- means anything.
alter table public.catalog_feed add column identity uuid not null default gen_random_uuid();
