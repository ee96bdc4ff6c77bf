-- The totals of 30 days of each developer who has requests in them, in a row that starts in 1970. A job adds up the days
-- of all developers now and then, so that a page of the operator reads one row of each: see src/usage/usage-totals.ts.

alter table public.developer_usage
  drop constraint developer_usage_period_known,
  add constraint developer_usage_period_known check (period in ('hour', 'day', '30 days'));

-- The notices of leaked keys read it once. They are recorded with the revocation now.
drop index public.events_of_finders;
