import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { openDatabase, poolOf, Statement } from '../../../src/platform/postgres/database.js';
import { isDatabaseUnavailable, isTimeout } from '../../../src/platform/postgres/errors.js';
import type { Pool } from '../../../src/platform/postgres/pool.js';
import { eventually } from '../../support/eventually.js';
import { testWorld } from '../../support/world.js';

/** Bound on a statement and on a connection from the pool where none is waited for, in milliseconds. */
const PATIENT_MS = 60_000;

/** The same where a test waits for it. */
const BOUND_MS = 1_500;

const END_CONNECTIONS = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'test pool'";

describe('a pool of connections', () => {
  const world = testWorld();

  /** Opens a pool of two connections for one test, and closes it. */
  async function withPool(
    use: (pool: Pool, db: Knex) => Promise<void>,
    { address = world.url, boundMs = PATIENT_MS, maxAgeSeconds = 60 } = {},
  ): Promise<void> {
    const db = openDatabase({
      maxAgeSeconds,
      address,
      applicationName: 'test pool',
      poolSize: 2,
      acquireTimeoutMs: boundMs,
      statementTimeoutMs: boundMs,
    });
    try {
      await use(poolOf(db), db);
    } finally {
      await db.destroy();
      await world.db.raw(END_CONNECTIONS);
    }
  }

  /** How many connections of the pool the server has. */
  async function connections(): Promise<number> {
    return (await world.db('pg_stat_activity').where({ application_name: 'test pool' })).length;
  }

  it('a connection reads timestamps in UTC, whatever the time zone and the style of dates of its role', () => {
    const url = new URL(world.url);
    url.searchParams.set('options', '-c TimeZone=Asia/Tokyo -c DateStyle=SQL,DMY');
    return withPool(
      async (_pool, db) => {
        const { rows } = await db.raw<{ rows: unknown }>("select timestamptz '2026-11-20 23:40:05.12Z' as at");
        assert.deepEqual(rows, [{ at: '2026-11-20T23:40:05.120000Z' }]);
      },
      { address: url.href },
    );
  });

  it('a pool closes a connection whose query timed out, of a statement or of Knex, and serves later queries', () =>
    withPool(
      async (pool, db) => {
        for (const sleep of [
          (): Promise<unknown> => pool.query({ text: 'select pg_sleep(60)' }),
          (): Promise<unknown> => db.raw('select pg_sleep(60)').then(),
        ]) {
          // The server has no bound of its own here: only the client's ends the wait.
          await pool.query({ text: 'set statement_timeout = 0' });
          await assert.rejects(sleep, { name: 'DatabaseTimeout' });
          await eventually('another connection serves', () => pool.query({ text: 'select 1' }));
          assert.equal(pool.state.used, 0);
        }
      },
      { boundMs: BOUND_MS },
    ));

  it('a pool replaces a connection of its maximum age, so that a process leaves a primary that was replaced', () =>
    withPool(
      async (pool) => {
        const backend = async () => JSON.stringify(await pool.query({ text: 'select pg_backend_pid()' }));
        const first = await backend();
        await eventually('another connection answers', async () => (await backend()) !== first);
      },
      { maxAgeSeconds: 1 },
    ));

  it('a pool takes an answer that arrived while this process was busy beyond its timeout', () =>
    withPool(
      async (pool) => {
        await pool.query({ text: 'select 1' });
        const answer = pool.query({ text: 'select pg_sleep(0.05), 2 as two' });
        await new Promise((sent) => setImmediate(sent));
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2 * BOUND_MS);
        assert.equal((await answer)[0]?.two, 2);
      },
      { boundMs: BOUND_MS },
    ));

  it('a pool refuses a query that has waited too long for a connection, and no other', () =>
    withPool(
      async (pool) => {
        const held = await Promise.all([pool.connect(), pool.connect()]);
        assert.deepEqual(pool.state, { used: 2, idle: 0, waiting: 0, max: 2 });
        await assert.rejects(pool.query({ text: 'select 1' }), isTimeout);
        const next = pool.query({ text: 'select 1 as one' });
        assert.equal(pool.state.waiting, 1);
        for (const connection of held) connection.release();
        assert.deepEqual(await next, [{ one: 1 }]);
      },
      { boundMs: BOUND_MS },
    ));

  it('a pool names the cause when the role has reached its limit of connections, and serves with the open ones', async () => {
    await world.db.raw("create role limited login password 'limited' connection limit 1");
    const url = new URL(world.url);
    [url.username, url.password] = ['limited', 'limited'];
    await withPool(
      async (pool) => {
        const held = await pool.connect();
        await assert.rejects(pool.query({ text: 'select 1' }), {
          name: 'DatabaseUnavailable',
          message: 'PostgreSQL refuses more connections. Raise max_connections, or lower DATABASE_POOL_SIZE.',
        });
        held.release();
        assert.deepEqual(await pool.query({ text: 'select 1 as one' }), [{ one: 1 }]);
      },
      { address: url.href },
    );
    await world.db.raw('drop role limited');
  });

  it('a pool survives a connection that breaks, in use or idle', () =>
    withPool(async (pool) => {
      const failed = assert.rejects(pool.query({ text: 'select pg_sleep(60)' }), isDatabaseUnavailable);
      await eventually('it is connected', async () => (await connections()) === 1);
      await world.db.raw(END_CONNECTIONS);
      await failed;
      await pool.query({ text: 'select 1' });
      await world.db.raw(END_CONNECTIONS);
      await eventually('the idle connection is dropped', () => pool.state.idle === 0);
      assert.deepEqual(await pool.query({ text: 'select 1 as one' }), [{ one: 1 }]);
    }));

  it('a pool that is closed waits for queries in progress, and accepts no more', () =>
    withPool(async (pool, db) => {
      const last = pool.query({ text: 'select pg_sleep(0.1), 1 as one' });
      await eventually('it is in progress', async () => (await connections()) === 1);
      const closing = db.destroy();
      assert.equal((await last).length, 1);
      await Promise.all([closing, db.destroy()]);
      await assert.rejects(pool.query({ text: 'select 1' }), { name: 'DatabaseUnavailable' });
      assert.equal(await connections(), 0);
    }));

  it('a statement is prepared once on a connection, and reaches the listeners to the queries of Knex', async () => {
    const { db } = world;
    const text = 'select $2::integer - $1::integer as difference';
    const difference = new Statement<{ difference: number }, [a: number, b: number]>('test-difference', text);
    const queries: unknown[] = [];
    db.on('query', (query) => queries.push(query));
    assert.deepEqual(await difference.rows(db, 1, 2), [{ difference: 1 }]);
    assert.deepEqual(await difference.first(db, 5, 3), { difference: -2 });
    assert.deepEqual(queries, [
      { sql: text, bindings: [1, 2] },
      { sql: text, bindings: [5, 3] },
    ]);
    const prepared = "select statement from pg_prepared_statements where name = 'test-difference'";
    assert.deepEqual(await poolOf(db).query({ text: prepared }), [{ statement: text }]);
  });

  it("a statement fails with the database's error, and its connection is used again", async () => {
    const { db } = world;
    const fails = new Statement('test-fails', 'select 1 / 0');
    const pid = new Statement<{ pid: number }>('test-pid', 'select pg_backend_pid() as pid');
    const before = await pid.rows(db);
    await assert.rejects(fails.rows(db), { code: '22012', message: 'division by zero' });
    await assert.rejects(async () => db.raw('select 1 / 0'), { code: '22012' });
    await eventually('the connection is returned', () => poolOf(db).state.used === 0);
    assert.deepEqual(await pid.rows(db), before);
  });

  it('a statement is answered after its columns have changed, on however many connections', async () => {
    const { db } = world;
    const outdated = new Statement('test-outdated', 'select a from outdated');
    await db.raw('create table outdated as select 1 as a');
    const { max } = poolOf(db).state;
    const onAll = () => Promise.all(Array.from({ length: max }, () => outdated.rows(db)));
    assert.deepEqual(await onAll(), Array(max).fill([{ a: 1 }]));
    assert.ok(poolOf(db).state.idle > 1);
    await db.raw("alter table outdated alter column a type text using 'one'");
    assert.deepEqual(await outdated.rows(db), [{ a: 'one' }]);
    assert.deepEqual(await onAll(), Array(max).fill([{ a: 'one' }]));
  });
});
