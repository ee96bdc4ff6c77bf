-- What the roles of servers and of writers may do. "catalog migrate" runs this each time, after the migrations, so that
-- roles created since get their rights too. Operators make their own roles members of these two.

-- Nobody may call a function of the service without a grant: see migrations.ts. A trigger needs no such right to fire,
-- but creating one does: with the right, a role could attach the function to a table of its own.
--
-- A dump's revocation from public fails with its grant to a role that the restoring server lacks, so it is repeated.
revoke execute on function public.catalog_quiet_clock(), public.events_remove_old(), public.caller_changes_remove_old()
  from public;
grant execute on function public.catalog_quiet_clock() to pg_read_all_data;
grant execute on function public.catalog_lock_writers() to pg_write_all_data;

do $$
declare
  role text;
begin
  -- Roles belong to the whole PostgreSQL server, which may hold several databases of the service.
  foreach role in array array['catalog_server', 'catalog_writer'] loop
    if to_regrole(role) is null then
      begin
        execute format('create role %I', role);
      exception
        when duplicate_object or unique_violation then
          null; -- a migration of another database has just created it
        when insufficient_privilege then
          return; -- the owner is the only role that uses this database until somebody else has created both
      end;
    end if;
  end loop;

  -- A database may have taken it from everybody.
  grant usage on schema public to catalog_server, catalog_writer;

  -- Servers. They cannot give a developer or a key another plan, reinstate a developer, or change events, nor choose the
  -- time of an event. Earlier versions granted the right to insert all columns.
  revoke insert on public.api_keys, public.events from catalog_server;
  grant select on public.plans, public.developers, public.api_keys, public.events, public.titles, public.catalog_counts,
    public.catalog_feed, public.caller_changes, public.migrations to catalog_server;
  grant insert (prefix, hash, developer_id, plan_id, label, expires_at, form_hash),
    update (label, last_used_at, last_refused_at, expires_at, successor_id, revoked_at) on public.api_keys to catalog_server;
  -- For sign-up; the other columns keep their defaults. Updating is also the right to lock a developer's row.
  grant insert (project_name, attribution_required), update (project_name) on public.developers to catalog_server;
  grant insert (developer_id, kind, actor, details) on public.events to catalog_server;
  grant select, insert, update on public.caller_change_readers to catalog_server;
  -- Only the owner makes links for operators, so that a server's role cannot let anybody in: it may write neither the
  -- kind of a link nor the hash of one that exists. To remove links that nobody has locked, it must be allowed to
  -- update something.
  grant select, delete, insert (hash, developer_id, expires_at), update (developer_id) on public.sign_in_links
    to catalog_server;
  grant select, insert, update, delete on public.sessions, public.identities, public.sign_ups, public.spent_sign_ins,
    public.passkeys, public.passkey_challenges, public.api_key_usage, public.api_key_outcomes, public.usage_log,
    public.developer_usage, public.failed_requests, public.notices to catalog_server;
  grant select on public.key_usage to catalog_server;
  grant select, insert, update on public.jobs to catalog_server;
  grant execute on function public.catalog_quiet_clock(), public.events_remove_old(), public.caller_changes_remove_old()
    to catalog_server;

  -- Writers of the catalogue can write rows, and falsify neither counts nor stamps.
  grant select, insert, update on public.titles, public.people, public.collections to catalog_writer;
  grant delete on public.people, public.collections to catalog_writer;
  grant usage on sequence public.titles_last_stamp to catalog_writer;
end
$$;
