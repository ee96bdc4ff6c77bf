-- Requests are counted in two steps, so that a key in constant use costs little. Each server appends what it has counted
-- to a log, where no two of them lock the same row. One server at a time adds the log to the hours of the keys and to
-- the totals of the developers. Readers add the rest of the log themselves.

create table public.usage_log (
  -- It references nothing: that would cost more than the row. Rows of a deleted key are left out of the hours.
  key_id integer not null,
  -- The start of the hour, in UTC.
  hour timestamptz not null
    constraint usage_log_hour_finite check (isfinite(hour)),
  operation text not null,
  outcome text not null,
  requests bigint not null
);
create index usage_log_key on public.usage_log (key_id);
-- Rows leave within minutes, and the next ones find their place only after a vacuum. It is cheap for so small a table.
alter table public.usage_log set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);

-- From here on the only counts of keys: by the hour, and for hours of more than a day ago by the day, in the row of its
-- first hour. Rows change every minute, so pages need room for another version of each.
alter table public.api_key_outcomes set (fillfactor = 50);

create view public.key_usage as
  select key_id, hour, operation, outcome, requests from public.api_key_outcomes
  union all
  select key_id, hour, operation, outcome, requests from public.usage_log;

-- Totals by hour and by day, so that nobody has to add up keys. The developer 0 is all of them together.
create table public.developer_usage (
  developer_id integer not null,
  period text collate "C" not null
    constraint developer_usage_period_known check (period in ('hour', 'day')),
  -- Of the hour or the day, in UTC.
  start timestamptz not null
    constraint developer_usage_start_finite check (isfinite(start)),
  served bigint not null,
  rejected bigint not null,
  refused bigint not null,
  failed bigint not null,
  primary key (developer_id, period, start)
) with (fillfactor = 50);
create index developer_usage_start on public.developer_usage (period, start);

insert into public.developer_usage
select coalesce(developer_id, 0), period, date_trunc(period, hour, 'UTC'),
       sum(served), sum(rejected), sum(refused), sum(failed)
  from public.api_key_usage
  join public.api_keys on id = key_id
  join (values ('hour', interval '3 days'), ('day', interval '35 days')) as kept (period, age) on hour > now() - age
 group by grouping sets ((developer_id, 2, 3), (2, 3));

-- What a version before the outcomes had counted, as outcomes of no operation.
insert into public.api_key_outcomes as u (key_id, hour, operation, outcome, requests)
select key_id, day, '', outcome, sum(requests)
  from (
    select key_id, date_trunc('day', hour, 'UTC') as day, kinds.outcome, kinds.requests
      from public.api_key_usage,
           lateral (values ('success', served), ('client_closed', rejected), ('rate_limit_exceeded', refused),
                           ('internal_error', failed)) as kinds (outcome, requests)
    union all
    select key_id, date_trunc('day', hour, 'UTC'),
           case when outcome in ('success', 'rate_limit_exceeded') then outcome
                when outcome in ('internal_error', 'service_unavailable') then 'internal_error'
                else 'client_closed' end,
           -requests
      from public.api_key_outcomes) as counted
 group by key_id, day, outcome
having sum(requests) > 0
on conflict (key_id, hour, operation, outcome) do update set requests = u.requests + excluded.requests;

-- api_key_usage stays for servers of the version before, which write it and the outcomes. A later version drops it.
