-- What failed and why: requests of a key by operation and outcome. The totals of api_key_usage stay beside it, since
-- 30 days of many keys are added up from them, and the version before adds to nothing else.

create table public.api_key_outcomes (
  key_id integer not null references public.api_keys (id) on delete cascade,
  -- The start of the hour, as in api_key_usage.
  hour timestamptz not null
    constraint api_key_outcomes_hour_whole check (hour = date_trunc('hour', hour, 'UTC')),
  -- The operation's id in the contract; empty for any other path.
  operation text not null,
  -- 'success', 'client_closed' when the client left before the answer, or the code of the error.
  outcome text not null,
  requests bigint not null,
  primary key (key_id, hour, operation, outcome)
);

create index api_key_outcomes_hour on public.api_key_outcomes (hour);

-- Refused for a reason of the client's, except by a limit. The version before counts these as served.
alter table public.api_key_usage add column rejected bigint not null default 0;
