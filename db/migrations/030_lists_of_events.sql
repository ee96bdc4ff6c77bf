-- The events of all developers in the order of their list, and the expiries of keys, which belong into it: of all
-- developers, and of one. Most keys do not expire. Where nulls would come is part of that order (src/events/events.ts).
-- No condition names a column that a revocation changes: its row would need an entry in every index, and so room on a
-- full disk. The notices of keys that expire soon read the same index.

create index events_at on public.events (at desc nulls last, id desc nulls last);

create index api_keys_expiries on public.api_keys (expires_at desc nulls last, id desc nulls last)
  where expires_at is not null;
create index api_keys_expiries_of_developer on public.api_keys (developer_id, expires_at, id)
  where expires_at is not null;
