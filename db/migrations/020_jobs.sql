-- Work beside the requests that one server at a time does for all: see src/platform/process/jobs.ts. A server that
-- finds a job done lately leaves it out.
create table public.jobs (
  name text collate "C" primary key,
  -- When a server last completed it.
  done_at timestamptz not null
    constraint jobs_done_at_finite check (isfinite(done_at))
);
