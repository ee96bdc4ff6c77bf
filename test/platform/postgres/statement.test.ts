import assert from 'node:assert/strict';
import pg from 'pg';
import { poolOf, Statement } from '../../../src/platform/postgres/database.js';
import { isDatabaseUnavailable } from '../../../src/platform/postgres/errors.js';
import { eventually } from '../../support/eventually.js';
import { testWorld } from '../../support/world.js';

const SUM = new Statement<{ sum: number }, [a: number, b: number]>(
  'test-sum',
  'select $2::integer - $1::integer as sum',
);

describe('a statement', () => {
  const world = testWorld();

  it('a statement puts values where its query has them, and is prepared once on a connection', async () => {
    const { db } = world;
    for (const [a, b, sum] of [
      [1, 2, 1],
      [5, 3, -2],
    ] as const) {
      assert.deepEqual(await SUM.rows(db, a, b), [{ sum }]);
      assert.deepEqual(await SUM.first(db, a, b), { sum });
    }
    const prepared = await poolOf(db).query<{ statement: string }>({
      text: "select statement from pg_prepared_statements where name = 'test-sum'",
    });
    assert.deepEqual(prepared, [{ statement: 'select $2::integer - $1::integer as sum' }]);
  });

  it('listeners to the queries of Knex also get statements', async () => {
    const heard: unknown[] = [];
    world.db.on('query', (query) => heard.push(query));
    await SUM.rows(world.db, 1, 2);
    assert.deepEqual(heard, [{ sql: 'select $2::integer - $1::integer as sum', bindings: [1, 2] }]);
  });

  it("a statement fails with the database's error, and its connection is used again", async () => {
    const { db } = world;
    const fails = new Statement('test-fails', 'select 1 / 0');
    const whoAmI = new Statement<{ pid: number }>('test-pid', 'select pg_backend_pid() as pid');
    const before = await whoAmI.rows(db);
    const { idle } = poolOf(db).state;
    await assert.rejects(fails.rows(db), { code: '22012', message: 'division by zero' });
    await eventually('it is given back', () => poolOf(db).state.used === 0);
    await assert.rejects(async () => db.raw('select 1 / 0'), { code: '22012' });
    await eventually('it is given back by Knex', () => poolOf(db).state.used === 0);
    assert.deepEqual(await whoAmI.rows(db), before);
    assert.equal(poolOf(db).state.idle, idle);
  });

  it('a statement takes texts, numbers, bytes and null, and returns what Knex does', async () => {
    type Given = readonly [text: string | null, n: number, bytes: Buffer];
    const columns = (text: string, n: string, bytes: string): string =>
      `select ${text}::text as text, ${n}::integer as n, ${bytes}::bytea as bytes, null::text as nothing, true as yes,
              12345678901 as large, timestamptz '2026-11-20 23:40:05.12+00' as at, '{"a":[1]}'::jsonb as json,
              '{x,ü}'::text[] as list, 1.50 as "Größe"`;
    const TYPES = new Statement<Record<string, unknown>, Given>('test-types', columns('$1', '$2', '$3'));
    const all: readonly Given[] = [
      ['naïve 七', -7, Buffer.from([0, 255, 128])],
      [null, 2 ** 30, Buffer.alloc(0)],
    ];
    for (const given of all) {
      const { rows: byKnex } = await world.db.raw<{ rows: { at: unknown }[] }>(columns('?', '?', '?'), given as never);
      assert.equal(byKnex.length, 1);
      // Twice, since the columns are known the second time.
      for (let i = 0; i < 2; i += 1) assert.deepEqual(await TYPES.rows(world.db, ...given), byKnex);
      assert.equal(byKnex[0]?.at, '2026-11-20T23:40:05.120000Z');
    }
  });

  it('a statement fails where its answer cannot be parsed or it does not compile, and its connection is used again', async () => {
    const { db } = world;
    const broken = new Statement('test-broken', 'select no_such_column from titles');
    const { idle } = poolOf(db).state;
    for (let i = 0; i < 2; i += 1) await assert.rejects(broken.rows(db), { code: '42703' });
    pg.types.setTypeParser(pg.types.builtins.MACADDR8, () => {
      throw new Error('unreadable');
    });
    const unreadable = new Statement(
      'test-unreadable',
      `select '08:00:2b:01:02:03:04:05'::macaddr8 from generate_series(1, 3)`,
    );
    for (let i = 0; i < 2; i += 1) await assert.rejects(unreadable.rows(db), { message: 'unreadable' });
    assert.deepEqual(await SUM.rows(db, 1, 2), [{ sum: 1 }]);
    await eventually('all are given back', () => poolOf(db).state.used === 0);
    assert.equal(poolOf(db).state.idle, idle);
  });

  it('no two statements may have the same name', async () => {
    const impostor = new Statement('test-sum', 'select 1 as sum');
    await SUM.rows(world.db, 1, 2);
    await assert.rejects(impostor.rows(world.db), /'test-sum' was used for a different statement/);
    assert.deepEqual(await SUM.rows(world.db, 1, 2), [{ sum: 1 }]);
  });

  it('a statement is answered after its columns have changed, on however many connections', async () => {
    const { db } = world;
    const all = new Statement('test-outdated', 'select a from outdated');
    await db.raw('create table outdated as select 1 as a');
    const { max } = poolOf(db).state;
    const askAll = () => Promise.all(Array.from({ length: max }, () => all.rows(db)));
    assert.deepEqual(await askAll(), Array(max).fill([{ a: 1 }]));
    const prepared = poolOf(db).state.idle;
    assert.ok(prepared > 1, String(prepared));
    // Found out by what is not translated.
    await db.raw("alter table outdated alter column a type text using 'one'");
    assert.deepEqual(await all.rows(db), [{ a: 'one' }]);
    assert.deepEqual(await askAll(), Array(max).fill([{ a: 'one' }]));
  });

  it('a statement fails once where its connection is lost', async () => {
    const { db } = world;
    const sleeps = new Statement('test-sleeps', 'select pg_sleep(60)');
    const lost = assert.rejects(sleeps.rows(db), (error) => isDatabaseUnavailable(error));
    await eventually('it is under way', async () => {
      const { rows } = await db.raw<{ rows: unknown[] }>(
        "select pg_terminate_backend(pid) from pg_stat_activity where query = 'select pg_sleep(60)'",
      );
      return rows.length === 1;
    });
    await lost;
    await eventually('it is gone', () => poolOf(db).state.used === 0);
    assert.deepEqual(await SUM.rows(db, 1, 2), [{ sum: 1 }]);
  });
});
