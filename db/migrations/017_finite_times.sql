-- Readers and writers go on meanwhile. It fails for an infinite time, whose table and column the constraint names: correct
-- it, and migrate again.
do $$
declare
  added record;
begin
  for added in
    select conrelid::regclass as in_table, conname as name from pg_constraint
     where connamespace = 'public'::regnamespace and contype = 'c' and not convalidated and conname like '%\_finite'
  loop
    execute format('alter table %s validate constraint %I', added.in_table, added.name);
  end loop;
end
$$;
