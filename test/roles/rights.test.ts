import assert from 'node:assert/strict';
import pg from 'pg';
import { revokeKey } from '../../src/keys/revoke.js';
import { eventually } from '../support/eventually.js';
import { readGuide } from '../support/guides.js';
import { testWorld } from '../support/world.js';

const ROLE = 'rights_role';

describe('the rights that the schema gives', () => {
  const world = testWorld();
  let role: pg.Client;

  before(async () => {
    // As a later migration would make one.
    await world.db.raw(`
      create role ${ROLE};
      create function public.made_later() returns trigger language plpgsql as 'begin return null; end'`);
    world.defer(() => world.db.raw(`drop owned by ${ROLE}; drop role ${ROLE}`));
    role = new pg.Client({ connectionString: world.url });
    await role.connect();
    world.defer(() => role.end());
    await role.query(`set role ${ROLE}`);
  });

  it('let a role that was granted nothing call no function of ours, those of later migrations included', async () => {
    const { rows } = await world.db.raw<{ rows: { f: string; callable: boolean }[] }>(`
      select oid::regprocedure::text as f, has_function_privilege('${ROLE}', oid, 'execute') as callable
        from pg_proc where pronamespace = 'public'::regnamespace`);
    assert.ok(rows.some(({ f }) => f === 'made_later()') && rows.length > 15);
    assert.deepEqual(
      rows.filter(({ callable }) => callable),
      [],
    );
  });

  it('let it attach no trigger function of ours to a table of its own', async () => {
    const { rows } = await world.db.raw<{ rows: { f: string }[] }>(
      "select oid::regprocedure::text as f from pg_proc where pronamespace = 'public'::regnamespace and prorettype = 'trigger'::regtype",
    );
    await role.query('create temporary table own (svc_id text, media_type text, available_in_library boolean)');
    for (const { f } of rows) {
      await assert.rejects(
        role.query(`create trigger own after insert on own for each row execute function public.${f}`),
        { code: '42501' },
        f,
      );
    }
  });

  it('let it create nothing beside what is ours', async () => {
    await assert.rejects(role.query('create table public.own (i integer)'), { code: '42501' });
  });

  it('let a writer of the catalogue read nothing of keys, sessions and sign-ins', async () => {
    const [, section = assert.fail()] = (await readGuide('operators/writing-in-sql')).split(
      '\n## A role for writers\n',
    );
    const grants = /```sql\n([\s\S]+?)```/.exec(section)?.[1] ?? assert.fail();
    await world.db.raw(grants);
    try {
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
      for (const table of ['sign_in_links', 'sessions', 'identities', 'sign_ups', 'api_keys', 'developers']) {
        await assert.rejects(role.query(`select from ${table}`), { code: '42501' }, table);
      }
    } finally {
      await role.query(`set role ${ROLE}`);
      await world.db.raw('drop owned by catalog_writer; drop role catalog_writer');
    }
  });

  it('let a role that may read or write everything call what servers and commands call', async () => {
    await world.db.raw(`grant pg_read_all_data, pg_write_all_data to ${ROLE}`);
    try {
      await role.query('select public.catalog_quiet_clock(), public.catalog_lock_writers()');
    } finally {
      await world.db.raw(`revoke pg_read_all_data, pg_write_all_data from ${ROLE}`);
    }
  });
});

describe('a session that skips triggers, as logical replication does', () => {
  const world = testWorld();
  let session: pg.Client;
  let heard: number;
  let prefix: string;

  before(async () => {
    ({ prefix } = await world.newKey());
    await revokeKey(world.db, prefix);
    await world.newKey({ planId: 'free' });
    await world.db('titles').insert({ svc_id: 'a', media_type: 'movie', title: 'A' });
    session = new pg.Client({ connectionString: world.url });
    await session.connect();
    world.defer(() => session.end());
    heard = 0;
    session.on('notification', () => (heard += 1));
    await session.query('listen catalog_callers; set session_replication_role = replica');
  });

  it('removes no title', async () => {
    await assert.rejects(session.query('delete from titles'), { code: '0A000' });
    await assert.rejects(session.query('truncate titles'), { code: '0A000' });
  });

  it('brings no revoked key back', async () => {
    await assert.rejects(session.query('update api_keys set revoked_at = null where prefix = $1', [prefix]), {
      code: '23000',
    });
  });

  for (const sql of [
    "update api_keys set expires_at = '2100-01-01Z' where revoked_at is null",
    'update api_keys set revoked_at = now() where revoked_at is null',
    'delete from api_keys',
    'truncate api_keys cascade',
    'update developers set suspended_at = now()',
    "update plans set requests_per_minute = 1 where id = 'free'",
  ]) {
    it(`is announced to servers: ${sql}`, async () => {
      const before = heard;
      await session.query(sql);
      await eventually('it is heard of', () => heard === before + 1);
    });
  }
});
