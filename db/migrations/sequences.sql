-- Moves sequences past the rows: logical replication copies rows and no sequences. "catalog migrate" runs this each time,
-- before it inserts a row of its own. While it moves a sequence, nobody draws from it, so none moves back.
do $$
declare
  numbered record;
  largest bigint;
  newest bigint;
begin
  for numbered in
    select d.refobjid::regclass as in_table, a.attname as in_column, d.objid::regclass as sequence
      from pg_depend d
      join pg_sequence s on s.seqrelid = d.objid
      join pg_class c on c.oid = d.refobjid
      join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
     where d.classid = 'pg_class'::regclass and d.refclassid = 'pg_class'::regclass and d.deptype in ('a', 'i')
       and c.relnamespace = 'public'::regnamespace and pg_has_role(c.relowner, 'usage')
  loop
    execute format('select max(%I) from %s', numbered.in_column, numbered.in_table) into largest;
    if largest > coalesce(pg_sequence_last_value(numbered.sequence), 0) then
      execute format('lock table %s in share row exclusive mode', numbered.in_table);
      execute format('select setval(%L, max(%I)) from %s', numbered.sequence, numbered.in_column, numbered.in_table);
    end if;
  end loop;

  select (extract(epoch from greatest(max(updated_at), (select feed_start from public.catalog_feed))) * 1000000)::bigint
    into newest from public.titles;
  if newest > (select last_value from public.titles_last_stamp) then
    perform public.catalog_lock_writers();
    perform setval('public.titles_last_stamp', greatest(newest, last_value)) from public.titles_last_stamp;
  end if;
end
$$;
