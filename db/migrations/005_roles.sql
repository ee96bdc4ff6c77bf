-- A role that may write to the catalogue can write rows, and nothing else.

-- Servers and writers are at work, so this takes all its locks at once, or releases them and tries again. Nobody
-- waits for it longer than half a second, which is less than a server allows a statement. A transaction that counts
-- in the old way holds one of these locks, so it has ended before the new way begins.
do $$
declare
  give_up_at timestamptz := clock_timestamp() + interval '60 seconds';
  lock_timeout_before text := current_setting('lock_timeout');
begin
  loop
    begin
      perform set_config('lock_timeout', '500ms', true);
      lock table public.titles, public.api_keys, public.developers, public.plans in share row exclusive mode;
      lock table public.catalog_counts, public.catalog_counts_waiting in access exclusive mode;
      perform set_config('lock_timeout', lock_timeout_before, true);
      return;
    exception
      when lock_not_available then
        if clock_timestamp() > give_up_at then
          raise exception 'the tables of the catalogue are in use by a long transaction, such as a dump or an import'
            using errcode = 'lock_not_available', hint = 'Migrate again when it has ended.';
        end if;
        perform pg_sleep(0.5);
    end;
  end loop;
end
$$;

-- Whatever the search path of its caller, a function finds what it names in PostgreSQL's own schema first. The
-- caller's temporary schema must be named to come last: unnamed, it would come first.
alter function public.api_keys_keep_revoked() set search_path = pg_catalog, pg_temp;
alter function public.announce_callers_changed() set search_path = pg_catalog, pg_temp;
alter function public.catalog_lock_writers() set search_path = pg_catalog, pg_temp;
alter function public.catalog_quiet_clock() set search_path = pg_catalog, pg_temp;
alter function public.titles_stamp_inserted() set search_path = pg_catalog, pg_temp;
alter function public.titles_stamp_updated() set search_path = pg_catalog, pg_temp;
alter function public.titles_refuse_removal() set search_path = pg_catalog, pg_temp;

-- Writers may not call catalog_lock_writers(), so the trigger takes the lock itself.
create or replace function public.catalog_take_writer_lock() returns trigger language plpgsql
set search_path = pg_catalog, pg_temp as $$
begin
  perform pg_advisory_xact_lock(x'66656564'::integer, 1);
  return null;
end
$$;

-- Nobody may call one of these functions without a grant. A trigger needs no such right to fire, but creating one
-- does: with the right, a role could attach the function to a table of its own. Functions of later migrations start
-- without it as well.
revoke execute on function
  public.api_keys_keep_revoked(), public.announce_callers_changed(), public.catalog_lock_writers(),
  public.catalog_quiet_clock(), public.catalog_take_writer_lock(), public.titles_follow_clock(),
  public.titles_stamp_inserted(), public.titles_stamp_updated(), public.titles_refuse_removal(),
  public.titles_count_inserted(), public.titles_count_updated(), public.catalog_count_inserted(),
  public.catalog_count_deleted(), public.catalog_count_truncated(), public.catalog_counts_settle()
  from public;

-- Servers call the first of these, imports and repairs the second, and they may run as another role than the owner.
-- Roles that can read or write titles keep the right to call it.
do $$
declare
  role regrole;
begin
  for role in
    select 'pg_read_all_data'::regrole
    union all
    select grantee::regrole from pg_class, aclexplode(relacl)
     where pg_class.oid = 'public.titles'::regclass and privilege_type = 'SELECT' and grantee not in (0, relowner)
  loop
    execute format('grant execute on function public.catalog_quiet_clock() to %s', role);
  end loop;
  for role in
    select 'pg_write_all_data'::regrole
    union all
    select grantee::regrole from pg_class, aclexplode(relacl)
     where pg_class.oid = 'public.titles'::regclass and privilege_type = 'INSERT' and grantee not in (0, relowner)
  loop
    execute format('grant execute on function public.catalog_lock_writers() to %s', role);
  end loop;
end
$$;

-- The default of PostgreSQL 15 and later; a database created by an earlier version may still let everybody create
-- objects here.
revoke create on schema public from public;

-- The row of counts records which transaction updated it last, and whether more of its counts wait. A setting held
-- this before, which any role can set; only the owner can write these columns. A rollback to a savepoint undoes them
-- together with the counts. The first count that waits queues the trigger that adds up all of them, so none can wait
-- without it.
--
-- A dump may name a transaction that the restored server has yet to run. That costs no count: all counts of that
-- transaction wait for its end.
alter table public.catalog_counts
  add column updated_by xid8 not null default '0',
  add column has_waiting boolean not null default false;

create or replace function public.catalog_counts_add(added bigint[]) returns void language plpgsql
set search_path = pg_catalog, pg_temp as $$
begin
  update public.catalog_counts set
    titles = titles + added[1],
    movies = movies + added[2],
    series = series + added[3],
    available_in_library = available_in_library + added[4],
    people = people + added[5],
    collections = collections + added[6],
    updated_by = pg_current_xact_id(),
    has_waiting = false;
end
$$;

create or replace function public.catalog_counts_note(added bigint[]) returns void language plpgsql
set search_path = pg_catalog, pg_temp as $$
declare
  is_first boolean;
begin
  select not has_waiting into is_first from public.catalog_counts where updated_by = pg_current_xact_id();
  if not found then
    perform public.catalog_counts_add(added);
    return;
  end if;
  if is_first then
    update public.catalog_counts set has_waiting = true;
  end if;
  insert into public.catalog_counts_waiting (added, is_first) values (added, is_first);
end
$$;

-- The old trigger adds up the counts that an earlier transaction has left waiting.
set constraints public.settle_counts immediate;
update public.catalog_counts set titles = titles;

drop trigger settle_counts on public.catalog_counts;
alter table public.catalog_counts_waiting add column is_first boolean not null default true;
create constraint trigger settle_counts after insert on public.catalog_counts_waiting
  deferrable initially deferred
  for each row when (new.is_first) execute function public.catalog_counts_settle();

create or replace function public.catalog_counts_settle() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
declare
  total bigint[];
begin
  with waiting as (delete from public.catalog_counts_waiting returning added)
  select array[sum(added[1]), sum(added[2]), sum(added[3]), sum(added[4]), sum(added[5]), sum(added[6])]
    into total from waiting;
  if total[1] is not null then
    perform public.catalog_counts_add(total);
  end if;
  return null;
end
$$;

-- It takes a name, the type that its callers pass: for text, another function could match their call better.
drop function public.catalog_count_other(text, bigint);
create function public.catalog_count_other(counter name, added bigint) returns void language plpgsql
set search_path = pg_catalog, pg_temp as $$
begin
  if added <> 0 then
    perform public.catalog_counts_note(case counter when 'people' then array[0, 0, 0, 0, added, 0]
                                              when 'collections' then array[0, 0, 0, 0, 0, added] end);
  end if;
end
$$;
revoke execute on function public.catalog_count_other(name, bigint) from public;

-- Logical replication and session_replication_role = replica skip triggers that are not "always", and replication
-- also skips statement triggers. The triggers that protect titles and revoked keys, and those that announce changes
-- of callers, are "always" for that reason. The feed's triggers are not: replication could not fire all of them, and
-- a faithful copy keeps its stamps and counts.
create trigger refuse_removal_of_row before delete on public.titles
  for each row execute function public.titles_refuse_removal();
create or replace trigger announce_removed after truncate on public.api_keys
  for each statement execute function public.announce_callers_changed();
create trigger announce_deleted after delete on public.api_keys
  for each row execute function public.announce_callers_changed();
alter table public.api_keys enable always trigger announce_changed;
alter table public.api_keys enable always trigger announce_deleted;
alter table public.api_keys enable always trigger announce_removed;
alter table public.api_keys enable always trigger api_keys_keep_revoked;
alter table public.developers enable always trigger announce_changed;
alter table public.plans enable always trigger announce_changed;
alter table public.titles enable always trigger refuse_removal;
alter table public.titles enable always trigger refuse_removal_of_row;
