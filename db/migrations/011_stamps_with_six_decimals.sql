-- A stamp never ends in 0: in seconds, it always has six decimals. Many languages print a number with 14 or 15
-- digits, which leaves four or five decimals, often rounded up. The service recognises such a position by its last
-- digit and reads from a little earlier. Stamps that already exist stay as they are, and cost only repeats.
--
-- The sequence still counts microseconds. When it reaches a stamp that ends in 0, another one is drawn.

-- Readers of titles would wait behind this if it waited for a long transaction, such as an import or a dump. It
-- therefore takes its lock at once, or tries again, as 005_roles.sql does.
do $$
declare
  give_up_at timestamptz := clock_timestamp() + interval '60 seconds';
  lock_timeout_before text := current_setting('lock_timeout');
begin
  loop
    begin
      perform set_config('lock_timeout', '500ms', true);
      lock table public.titles in access exclusive mode;
      perform set_config('lock_timeout', lock_timeout_before, true);
      return;
    exception
      when lock_not_available then
        if clock_timestamp() > give_up_at then
          raise exception 'the table of titles is in use by a long transaction, such as an import or a dump'
            using errcode = 'lock_not_available', hint = 'Migrate again when it has ended.';
        end if;
        perform pg_sleep(0.5);
    end;
  end loop;
end
$$;

alter table public.titles alter column created_at set default (
  timestamptz 'epoch'
    + case nextval('public.titles_last_stamp') % 10
        when 0 then nextval('public.titles_last_stamp')
        else currval('public.titles_last_stamp')
      end * interval '1 microsecond'
);

create or replace function public.titles_stamp_inserted() returns trigger language plpgsql
set search_path = pg_catalog, pg_temp as $$
begin
  new.created_at := timestamptz 'epoch'
    + case nextval('public.titles_last_stamp') % 10
        when 0 then nextval('public.titles_last_stamp')
        else currval('public.titles_last_stamp')
      end * interval '1 microsecond';
  new.updated_at := new.created_at;
  return new;
end
$$;

create or replace function public.titles_stamp_updated() returns trigger language plpgsql
set search_path = pg_catalog, pg_temp as $$
begin
  if new.svc_id <> old.svc_id then
    raise exception 'svc_id of a title cannot change (% to %)', old.svc_id, new.svc_id
      using errcode = 'integrity_constraint_violation',
            hint = 'Mirrors know a title by its svc_id. Insert a new title instead.';
  end if;
  new.created_at := old.created_at;
  new.updated_at := old.updated_at;
  if new is not distinct from old then
    return null; -- a row that an update leaves the same is not a change
  end if;
  new.updated_at := timestamptz 'epoch'
    + case nextval('public.titles_last_stamp') % 10
        when 0 then nextval('public.titles_last_stamp')
        else currval('public.titles_last_stamp')
      end * interval '1 microsecond';
  return new;
end
$$;
