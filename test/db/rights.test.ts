import assert from 'node:assert/strict';
import pg from 'pg';
import { readCatalogCounts, verifyCounts } from '../../src/catalog/counts.js';
import { revokeKey } from '../../src/keys/revoke.js';
import { testWorld, type World } from '../support/world.js';

const ROLE = 'rights_role';

async function connect(world: World, setUp: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: world.url });
  await client.connect();
  world.defer(() => client.end());
  await client.query(setUp);
  return client;
}

describe('a role of the database', () => {
  const world = testWorld();
  let role: pg.Client;

  before(async () => {
    // As a later migration would make one.
    await world.db.raw(`
      create role ${ROLE};
      create function public.made_later() returns trigger language plpgsql as 'begin return null; end'`);
    world.defer(() => world.db.raw(`drop owned by ${ROLE}; drop role ${ROLE}`));
    role = await connect(world, `set role ${ROLE}`);
  });

  async function functions(condition = 'true'): Promise<{ f: string; callable: boolean; path: string | null }[]> {
    const { rows } = await world.db.raw<{ rows: { f: string; callable: boolean; path: string | null }[] }>(`
      select oid::regprocedure::text as f, has_function_privilege('${ROLE}', oid, 'execute') as callable,
             proconfig::text as path
        from pg_proc where pronamespace = 'public'::regnamespace and ${condition}`);
    return rows;
  }

  it('a role without rights can call no function of the service, those of later migrations included', async () => {
    const all = await functions();
    assert.ok(all.some(({ f }) => f === 'made_later()') && all.length > 15);
    assert.deepEqual(
      all.filter(({ callable }) => callable),
      [],
    );
  });

  it('a role without rights can attach no trigger function of the service to a table of its own', async () => {
    await role.query('create temporary table own (svc_id text, media_type text, available_in_library boolean)');
    for (const { f } of await functions("prorettype = 'trigger'::regtype")) {
      const sql = `create trigger own after insert on own for each row execute function public.${f}`;
      await assert.rejects(role.query(sql), { code: '42501' }, f);
    }
  });

  it('a role without rights can create nothing in the schema of the service', async () => {
    await assert.rejects(role.query('create table public.own (i integer)'), { code: '42501' });
  });

  it('a role that may read and write everything can call what servers and commands call', async () => {
    await world.db.raw(`grant pg_read_all_data, pg_write_all_data to ${ROLE}`);
    try {
      await role.query('select public.catalog_quiet_clock(), public.catalog_lock_writers()');
    } finally {
      await world.db.raw(`revoke pg_read_all_data, pg_write_all_data from ${ROLE}`);
    }
  });

  it('a writer of the catalogue can read nothing of keys, sessions and sign-ins', async () => {
    const { rows } = await world.db.raw<{ rows: { table: string }[] }>(`
      select distinct c.relname as table from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
       where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'v', 'm')
         and (has_table_privilege('catalog_writer', c.oid, 'select, insert, update, delete, truncate, references, trigger')
              or has_column_privilege('catalog_writer', c.oid, a.attnum, 'select, insert, update, references'))
       order by 1`);
    assert.deepEqual(
      rows.map(({ table }) => table),
      ['collections', 'people', 'titles'],
    );
    await role.query('set role catalog_writer');
    try {
      for (const table of ['sign_in_links', 'sessions', 'identities', 'sign_ups', 'api_keys', 'developers']) {
        await assert.rejects(role.query(`select from ${table}`), { code: '42501' }, table);
      }
    } finally {
      await role.query(`set role ${ROLE}`);
    }
  });

  it('no search path of a caller decides what the functions of the service use', async () => {
    const exposed = (await functions("proname <> 'made_later'")).filter(
      ({ path }) => !path?.includes('"search_path=pg_catalog, pg_temp"'),
    );
    assert.deepEqual(exposed, []);
  });

  it('objects of a writer with the names of others change no stamp and no count', async () => {
    const refuses = "language plpgsql as $$ begin raise exception using errcode = 'IMP01'; end $$";
    await world.db.raw(`
      create schema impostors authorization ${ROLE};
      grant all on titles, people, collections to ${ROLE};
      grant usage on sequence titles_last_stamp to ${ROLE}`);
    await role.query(`
      create function impostors.clock_timestamp() returns timestamptz ${refuses};
      create function impostors.nextval(regclass) returns bigint ${refuses};
      create function impostors.pg_advisory_xact_lock(integer, integer) returns void ${refuses};
      create function impostors.equals(text, text) returns boolean ${refuses};
      create operator impostors.= (leftarg = text, rightarg = text, function = impostors.equals);
      create domain pg_temp.timestamptz as pg_catalog.timestamptz check (false);
      create temporary view catalog_counts as select 1 / (select 0) as titles;
      set search_path = impostors, pg_catalog, public`);
    for (const sql of [
      'select clock_timestamp()',
      "select 'a'::text = 'a'::text",
      'select titles from catalog_counts',
    ]) {
      await assert.rejects(role.query(sql), sql);
    }
    const before = new Date().toISOString();
    await role.query("insert into public.titles (svc_id, media_type, title) values ('a', 'movie', 'A')");
    await role.query(
      "update public.titles set media_type = 'series', updated_at = '2001-01-01Z'::pg_catalog.timestamptz",
    );
    await role.query("insert into public.people (svc_id, name) values ('p', 'P')");
    const [stamp = ''] = await world.db('titles').pluck<string[]>('updated_at');
    assert.ok(before < stamp && stamp < new Date().toISOString(), stamp);
    assert.deepEqual((await verifyCounts(world.db)).mismatches, []);
    assert.deepEqual(Object.values(await readCatalogCounts(world.db)).filter(Boolean), [1, 1, 1]);
  });
});

describe('a session that does not wait for the disk', () => {
  const world = testWorld();

  it('a change of what a key may do waits for the disk, so that no crash undoes a revocation', async () => {
    const { prefix } = await world.newKey({ planId: 'free' });
    const session = await connect(world, 'set synchronous_commit = off');
    for (const [sql, expected] of [
      [`update api_keys set last_used_at = now() where prefix = '${prefix}'`, 'off'],
      [`update api_keys set revoked_at = now() where prefix = '${prefix}'`, 'on'],
      ['update developers set suspended_at = now()', 'on'],
      ["update plans set requests_per_minute = 1 where id = 'free'", 'on'],
    ]) {
      await session.query(`begin; ${sql}`);
      const { rows } = await session.query<{ synchronous_commit: string }>('show synchronous_commit');
      assert.equal(rows[0]?.synchronous_commit, expected, sql);
      await session.query('commit');
    }
  });
});

describe('a session that skips triggers, as the workers of logical replication do', () => {
  const world = testWorld();
  let session: pg.Client;
  let revoked: string;

  before(async () => {
    ({ prefix: revoked } = await world.newKey());
    await revokeKey(world.db, revoked);
    await world.newKey({ planId: 'free' });
    await world.db('titles').insert({ svc_id: 'a', media_type: 'movie', title: 'A' });
    session = await connect(world, 'set session_replication_role = replica');
  });

  it('a session that skips triggers cannot remove titles', async () => {
    for (const sql of ['delete from titles', 'truncate titles']) {
      await assert.rejects(session.query(sql), { code: '0A000' }, sql);
    }
  });

  it('a session that skips triggers cannot reactivate a revoked key', async () => {
    const sql = 'update api_keys set revoked_at = null where prefix = $1';
    await assert.rejects(session.query(sql, [revoked]), { code: '23000' });
  });

  it('a change by a session that skips triggers is announced to servers', async () => {
    for (const sql of [
      "update api_keys set expires_at = '2100-01-01Z' where revoked_at is null",
      'update api_keys set revoked_at = now() where revoked_at is null',
      'delete from api_keys',
      'truncate api_keys cascade',
      'update developers set suspended_at = now()',
      "update plans set requests_per_minute = 1 where id = 'free'",
    ]) {
      await world.db('caller_changes').delete();
      await session.query(sql);
      assert.ok((await world.db('caller_changes')).length > 0, sql);
    }
  });
});
