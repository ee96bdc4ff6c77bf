-- What a role that may write to the catalogue can make of that right: rows, and nothing else.

-- Servers and writers are at work. So this takes all its locks at once, or releases them and tries again. Nobody waits for
-- it longer than half a second, which is less than a server gives a statement. A transaction that counts in the old way
-- holds one of these locks. So it is over before the new way begins.
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

-- Whatever the search path of its caller, a function finds what it names in PostgreSQL's own schema first. The caller's
-- temporary schema comes last. An unnamed temporary schema would come first of all.
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

-- Nobody may call a function of ours unless it is granted. A trigger needs no such right, but its creation does. With the
-- right, a role could attach the function to a table of its own. Functions of later migrations begin without it as well.
revoke execute on function
  public.api_keys_keep_revoked(), public.announce_callers_changed(), public.catalog_lock_writers(),
  public.catalog_quiet_clock(), public.catalog_take_writer_lock(), public.titles_follow_clock(),
  public.titles_stamp_inserted(), public.titles_stamp_updated(), public.titles_refuse_removal(),
  public.titles_count_inserted(), public.titles_count_updated(), public.catalog_count_inserted(),
  public.catalog_count_deleted(), public.catalog_count_truncated(), public.catalog_counts_settle()
  from public;

-- Servers call the first of these, import and repair the second, and they may run as another role than the owner. Roles
-- that can read titles, or write them, keep the right to call it.
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

-- What PostgreSQL 15 does for new databases; one that an earlier version made may still let everybody create objects here.
revoke create on schema public from public;

-- The row that counts notes which transaction updated it last, and whether more of its counts wait. A setting told that
-- before, which any role can set. Only the owner can write these columns, and a rollback to a savepoint takes them back
-- together with the counts. The first count that waits brings the trigger that adds up all of them, so none can wait without.
--
-- A dump may name a transaction that the server it is restored to has yet to run. That costs no count: all counts of that
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

-- The old trigger adds up what an earlier transaction has left waiting.
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

-- It takes a name, as its callers have it: for text there could be a function that fits their call better.
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

-- Logical replication and session_replication_role = replica skip triggers that are not "always", and replication also
-- those that fire once a statement. What keeps titles and revoked keys, and what announces changes of callers, holds there
-- too. The feed's triggers do not: replication could not fire all of them, and a faithful copy keeps its stamps and counts.
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
