import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { readCatalogCounts, verifyCounts } from '../../src/catalog/counts.js';
import { readGuide } from '../support/guides.js';
import { untilWaiting } from '../support/postgres/until-waiting.js';
import { databaseClock, stampOf } from '../support/titles.js';
import { testWorld } from '../support/world.js';

/** The SQL that the guide shows. */
async function sqlOfGuide(): Promise<string[]> {
  return [...(await readGuide('writing-in-sql')).matchAll(/```sql\n([\s\S]+?)```/g)].map(([, sql = '']) => sql);
}

/**
 * What the guide says that a writer can still do, by its SQL: how the writer gets there, and who waits until its
 * session ends.
 */
const LEFT_TO_WRITERS: Readonly<Record<string, { first?: string; delays?: 'writers' | 'everybody'; last?: string }>> = {
  'select pg_advisory_lock(1717921124, 1)': { delays: 'writers' },
  'begin; update titles set has_bundles = true': { delays: 'writers' },
  "prepare transaction 'forgotten'": {
    first: 'begin; update titles set has_bundles = true',
    delays: 'writers',
    last: "rollback prepared 'forgotten'",
  },
  'select from titles for update': { first: 'begin', delays: 'writers' },
  'lock table titles': { first: 'begin', delays: 'everybody' },
  "select nextval('titles_last_stamp')": {},
  'set local synchronous_commit = off': { first: 'begin; update titles set has_bundles = true', delays: 'writers' },
};

/** Settings that any role may change, and that change how PostgreSQL reads, compares, writes or commits. */
const SETTINGS_OF_WRITERS = {
  search_path: '',
  timezone: 'Pacific/Kiritimati',
  datestyle: 'SQL, DMY',
  intervalstyle: 'sql_standard',
  standard_conforming_strings: 'off',
  array_nulls: 'off',
  transform_null_equals: 'on',
  bytea_output: 'escape',
  extra_float_digits: '-15',
  default_transaction_isolation: 'repeatable read',
  default_transaction_deferrable: 'on',
  synchronous_commit: 'off',
  plan_cache_mode: 'force_custom_plan',
  row_security: 'off',
};

/** The program has its own connection, plain SQL, and the role that the guide creates. */
describe('a program that writes in SQL', () => {
  const world = testWorld();
  let writer: pg.Client;
  let other: pg.Client;

  before(async () => {
    const [, creation = assert.fail()] = await sqlOfGuide();
    await world.db.raw(creation);
    [writer, other] = await Promise.all([connect(), connect()]);
    world.defer(async () => {
      await Promise.all([writer.end(), other.end()]);
      await world.db.raw('drop owned by catalog_import; drop role catalog_import');
    });
  });

  async function connect(): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: world.url });
    await client.connect();
    await client.query("set role catalog_import; set timezone to 'UTC'");
    return client;
  }

  /** All titles in the order of the feed. */
  async function feed(): Promise<{ svc_id: string; title: string; available_in_library: boolean }[]> {
    return world.db('titles').select('svc_id', 'title', 'available_in_library').orderBy('updated_at');
  }

  async function ids(): Promise<string[]> {
    return (await feed()).map(({ svc_id }) => svc_id);
  }

  async function copy(client: pg.Client, statement: string, text: string): Promise<void> {
    await pipeline(Readable.from([text]), client.query(copyFrom(statement)));
  }

  it('a writer writes titles and people as the guide shows', async () => {
    const [statements = assert.fail()] = await sqlOfGuide();
    await writer.query("insert into people (svc_id, name) values ('paul-wegener', 'Paul Wegener')");
    for (const statement of statements.split(';')) await writer.query(statement);
    const expected = [
      { svc_id: 'faust-1926', title: 'Faust', available_in_library: true },
      { svc_id: 'golem-1920', title: 'The Golem', available_in_library: false },
    ];
    assert.deepEqual(await feed(), expected);
    const { titles, available_in_library: available, people } = await readCatalogCounts(world.db);
    assert.deepEqual([titles, available, people], [2, 1, 0]);
    // An unchanged row keeps its place.
    await writer.query("update titles set title = 'Faust' where svc_id = 'faust-1926'");
    assert.deepEqual(await feed(), expected);
  });

  it('a writer can use COPY, and the times in its rows are ignored', async () => {
    await copy(writer, 'copy titles (svc_id, media_type, title) from stdin', 'c1\tmovie\tOne\nc2\tseries\tTwo\n');
    await copy(
      writer,
      'copy titles (svc_id, media_type, title, created_at, updated_at) from stdin (format csv)',
      'c3,movie,Three,2001-01-01,2001-01-01\nc4,movie,Four,2099-01-01,2099-01-01\nc5,movie,Five,,\n',
    );
    assert.deepEqual((await ids()).slice(-5), ['c1', 'c2', 'c3', 'c4', 'c5']);
    const { rows } = await writer.query(
      "select count(*)::integer as titles from titles where created_at = updated_at and updated_at between now() - interval '1 hour' and now()",
    );
    assert.deepEqual(rows, [{ titles: 5 + 1 }]);
  });

  it('a writer may do nothing but write: no removals, counts, stamps, triggers, keys or events', async () => {
    const before = await feed();
    for (const sql of [
      "delete from titles where svc_id = 'c1'",
      'truncate titles',
      'update catalog_counts set titles = 0',
      'insert into catalog_counts_waiting values (array[1, 1, 1, 1, 1, 1])',
      "select catalog_counts_note('{1,0,0,0,0,0}')",
      "select catalog_counts_add('{1,0,0,0,0,0}')",
      "select setval('titles_last_stamp', 9000000000000000)",
      'alter table titles disable trigger all',
      'set session_replication_role = replica',
      'select * from api_keys',
      'select hash from api_keys',
      'delete from api_keys',
      'select * from events',
      'delete from events',
      'insert into events (developer_id, kind, actor) values (1, $$revoked$$, $$operator$$)',
    ]) {
      await assert.rejects(writer.query(sql), { code: '42501' }, sql);
    }
    assert.deepEqual(await feed(), before);
  });

  it('a writer gets a serialization failure if it waited at a stricter level than read committed', async () => {
    await other.query('begin isolation level repeatable read');
    await other.query('select count(*) from titles');
    await writer.query("insert into titles (svc_id, media_type, title) values ('between', 'movie', 'T')");
    await assert.rejects(other.query("insert into titles (svc_id, media_type, title) values ('stale', 'movie', 'T')"), {
      code: '40001',
    });
    await other.query('rollback');
    assert.equal((await ids()).at(-1), 'between');
  });

  it('a writer can be found and terminated with the queries of the guide while it holds the lock', async () => {
    const [, , , bounds = assert.fail()] = await sqlOfGuide();
    const find = /^select[^;]+/m.exec(bounds)?.[0] ?? assert.fail();
    const holders = async (): Promise<number[]> =>
      (await world.db.raw<{ rows: { pid: number }[] }>(find)).rows.map(({ pid }) => pid);
    assert.deepEqual(await holders(), []);
    for (const [i, act] of [
      "insert into titles (svc_id, media_type, title) values ('held', 'movie', 'T')",
      'select pg_advisory_xact_lock(1717921124, 1)',
    ].entries()) {
      const holder = await connect();
      holder.on('error', () => undefined);
      await holder.query(`begin; ${act}`);
      const waiting = writer.query(`insert into titles (svc_id, media_type, title) values ('next-${i}', 'movie', 'T')`);
      const [pid, ...others] = await holders();
      assert.deepEqual(others, []);
      await world.db.raw('select pg_terminate_backend(?)', [pid ?? assert.fail()]);
      await waiting;
      assert.equal((await ids()).at(-1), `next-${i}`);
    }
  });

  it('a writer has a lock_timeout and, apart from the owner, is the only role that may connect', async () => {
    const [, , connecting = assert.fail(), bounds = assert.fail()] = await sqlOfGuide();
    const name = new URL(world.url).pathname.slice(1);
    await world.db.raw(connecting.replaceAll('database catalog', `database ${name}`).replace('catalog_web, ', ''));
    await world.db.raw(bounds);
    const { rows } = await world.db.raw<{ rows: unknown[] }>(
      `select has_database_privilege('catalog_import', current_database(), 'connect') as connects,
              has_database_privilege('catalog_import', current_database(), 'temporary') as makes_tables,
              has_database_privilege('pg_monitor', current_database(), 'connect') as anyone
         from pg_roles where rolname = 'catalog_import' and 'lock_timeout=10s' = any(rolconfig)`,
    );
    assert.deepEqual(rows, [{ connects: true, makes_tables: false, anyone: false }]);
  });

  it('a writer can only move later stamps ahead by drawing from their sequence', async () => {
    const before = await feed();
    const { rows } = await writer.query<{ last: string }>(
      "select max(nextval('titles_last_stamp'))::text as last from generate_series(1, 100000)",
    );
    await writer.query("insert into titles (svc_id, media_type, title) values ('ahead', 'movie', 'T')");
    await other.query("insert into titles (svc_id, media_type, title) values ('after-ahead', 'movie', 'T')");
    assert.deepEqual((await ids()).slice(before.length), ['ahead', 'after-ahead']);
    const { rows: stamps } = await writer.query<{ later: boolean }>(
      `select extract(epoch from updated_at) * 1000000 > $1::numeric as later from titles where svc_id = 'ahead'`,
      [rows[0]?.last],
    );
    assert.deepEqual(stamps, [{ later: true }]);
  });

  it('a writer can delay others in some ways, and the feed stays complete and in order', async () => {
    for (const [sql, { first = '', delays, last }] of Object.entries(LEFT_TO_WRITERS)) {
      const holder = await connect();
      for (const statement of `${first};${sql}`.split(';')) await holder.query(statement);
      const written = writer.query("update titles set title = title || '.' where svc_id = 'golem-1920'");
      if (delays !== undefined) await untilWaiting(`a writer waits: ${sql}`, world.db);
      const reading = world.db.transaction(async (reader) => {
        await reader.raw("set local lock_timeout = '1ms'");
        await reader('titles').first();
      });
      if (delays === 'everybody') await assert.rejects(reading, { code: '55P03' });
      else await reading;
      if (last !== undefined) await holder.query(last);
      await holder.end();
      await written;
      assert.equal((await ids()).at(-1), 'golem-1920', sql);
    }
  });

  it('a writer changes neither stamps, counts nor commits by the settings of its session', async () => {
    const session = await connect();
    for (const [name, value] of Object.entries(SETTINGS_OF_WRITERS)) {
      await session.query('select pg_catalog.set_config($1, $2, false)', [name, value]);
    }
    const before = await databaseClock(world.db);
    await session.query('begin; set constraints all immediate');
    for (const title of ['A', 'B', 'C']) {
      await session.query(
        `insert into public.titles (svc_id, media_type, title) values ('set-${title}', 'movie', '${title}')`,
      );
      await session.query("insert into public.people (svc_id, name) values ($1, 'P')", [`set-${title}`]);
    }
    await session.query("update public.titles set available_in_library = true where svc_id = 'set-A'");
    const { rows } = await session.query('show synchronous_commit');
    assert.deepEqual(rows, [{ synchronous_commit: 'on' }]);
    await session.query('commit');
    await session.end();
    assert.deepEqual((await ids()).slice(-3), ['set-B', 'set-C', 'set-A']);
    const [first, last] = [await stampOf(world.db, 'set-B'), await stampOf(world.db, 'set-A')];
    assert.ok(before < first && last < (await databaseClock(world.db)) + 1_000n);
  });

  it('a writer leaves all counts right', async () => {
    assert.deepEqual((await verifyCounts(world.db)).mismatches, []);
  });
});
