-- Servers add their counts of usage without numbering the batches. A batch whose reply was lost may then count twice.
--
-- Servers of the version before still write their numbers, and would lose counts without this table. It therefore stays
-- until a later migration, when those servers have been replaced.
comment on table public.usage_writers is 'Unused. Only servers of an earlier version write it; a later migration drops it.';
