-- What keys were used for: requests an hour. Servers add up in memory and write batches, so the rows grow with the
-- keys that are used, not with their requests.

create table public.api_key_usage (
  key_id integer not null references public.api_keys (id) on delete cascade,
  -- The start of the hour. Whole hours of UTC make whole days of UTC.
  hour timestamptz not null
    constraint api_key_usage_hour_whole check (hour = date_trunc('hour', hour, 'UTC')),
  -- Answered. Refused by a limit. Failed by a fault of the service.
  served bigint not null,
  refused bigint not null,
  failed bigint not null,
  primary key (key_id, hour)
);

create index api_key_usage_hour on public.api_key_usage (hour);
