import assert from 'node:assert/strict';
import { openDatabase, poolOf } from '../../../src/platform/postgres/database.js';
import { isDatabaseUnavailable } from '../../../src/platform/postgres/errors.js';
import { eventually } from '../../support/eventually.js';
import { testWorld } from '../../support/world.js';

const BOUND_MS = 200;

describe('a pool of connections', () => {
  const world = testWorld();

  function open({ address = world.url, acquireTimeoutMs = BOUND_MS, maxAgeSeconds = 60 } = {}): ReturnType<
    typeof openDatabase
  > {
    return openDatabase({
      maxAgeSeconds,
      address,
      applicationName: 'test pool',
      poolSize: 2,
      acquireTimeoutMs,
      statementTimeoutMs: BOUND_MS,
    });
  }

  /** How many connections of the pool the server has. */
  async function connections(): Promise<number> {
    const { rows } = await world.db.raw<{ rows: { n: number }[] }>(
      "select count(*) as n from pg_stat_activity where application_name = 'test pool'",
    );
    return rows[0]?.n ?? NaN;
  }

  it('a pool closes a connection whose query timed out, and serves later queries', async () => {
    const db = open();
    const pool = poolOf(db);
    try {
      // The server has no bound of its own here: only the client's ends the wait.
      await pool.query({ text: 'set statement_timeout = 0' });
      await assert.rejects(pool.query({ text: 'select pg_sleep(60)' }), { name: 'DatabaseTimeout' });
      assert.deepEqual(await pool.query({ text: 'select 1 as one' }), [{ one: 1 }]);
      assert.equal(pool.state.used, 0);
    } finally {
      await db.destroy();
    }
    await world.db.raw("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'test pool'");
  });

  it('a pool replaces a connection of its maximum age, so that a process leaves a primary that was replaced', async () => {
    const db = open({ maxAgeSeconds: 1 });
    const backend = (): Promise<unknown> => poolOf(db).query({ text: 'select pg_backend_pid()' });
    try {
      const first = JSON.stringify(await backend());
      await eventually('another connection answers', async () => JSON.stringify(await backend()) !== first);
    } finally {
      await db.destroy();
    }
  });

  it('a pool takes an answer that arrived while this process was busy beyond its timeout', async () => {
    const db = open();
    const pool = poolOf(db);
    try {
      await pool.query({ text: 'select 1' });
      const answer = pool.query({ text: 'select pg_sleep(0.05), 2 as two' });
      await new Promise((sent) => setImmediate(sent));
      const busyUntil = performance.now() + 2 * BOUND_MS;
      while (performance.now() < busyUntil);
      assert.equal((await answer)[0]?.two, 2);
    } finally {
      await db.destroy();
    }
  });

  it('a pool bounds the queries of Knex too, on a connection that statements have used', async () => {
    const db = open();
    try {
      await poolOf(db).query({ text: 'set statement_timeout = 0' });
      await assert.rejects(async () => db.raw('select pg_sleep(5)'), { name: 'DatabaseTimeout' });
    } finally {
      await db.destroy();
    }
    await world.db.raw("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'test pool'");
  });

  it('a pool refuses a query that has waited too long for a connection, and no other', async () => {
    const db = open();
    const pool = poolOf(db);
    const held = await Promise.all([pool.connect(), pool.connect()]);
    try {
      assert.deepEqual(pool.state, { used: 2, idle: 0, waiting: 0, max: 2 });
      await assert.rejects(pool.query({ text: 'select 1' }), isDatabaseUnavailable);
      const next = pool.query({ text: 'select 1 as one' });
      assert.equal(pool.state.waiting, 1);
      for (const connection of held) connection.release();
      assert.deepEqual(await next, [{ one: 1 }]);
    } finally {
      await db.destroy();
    }
    await eventually('its connections are gone', async () => (await connections()) === 0);
  });

  it('a pool names the cause when the role has reached its limit of connections, and serves with those that it has', async () => {
    await world.db.raw("create role limited login password 'limited' connection limit 1");
    const url = new URL(world.url);
    [url.username, url.password] = ['limited', 'limited'];
    const db = open({ address: url.href });
    const pool = poolOf(db);
    try {
      const held = await pool.connect();
      await assert.rejects(pool.query({ text: 'select 1' }), {
        name: 'DatabaseUnavailable',
        message: 'PostgreSQL refuses more connections. Raise max_connections, or lower DATABASE_POOL_SIZE.',
      });
      held.release();
      assert.deepEqual(await pool.query({ text: 'select 1 as one' }), [{ one: 1 }]);
    } finally {
      await db.destroy();
      await world.db.raw('drop role limited');
    }
  });

  it('a pool survives a connection that breaks, in use or idle', async () => {
    const db = open({ acquireTimeoutMs: 10_000 });
    const pool = poolOf(db);
    try {
      const busy = pool.query({ text: 'select pg_sleep(0.15), 1 as one' });
      const failed = assert.rejects(busy, isDatabaseUnavailable);
      await eventually('it is connected', async () => (await connections()) === 1);
      await world.db.raw("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'test pool'");
      await failed;
      await pool.query({ text: 'select 1' });
      await world.db.raw("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'test pool'");
      await eventually('the idle one is given up', () => pool.state.idle === 0);
      assert.deepEqual(await pool.query({ text: 'select 1 as one' }), [{ one: 1 }]);
    } finally {
      await db.destroy();
    }
  });

  it('a pool that is closed waits for queries in progress, and accepts no more', async () => {
    const db = open();
    const pool = poolOf(db);
    const last = pool.query({ text: 'select pg_sleep(0.1), 1 as one' });
    await eventually('it is under way', async () => (await connections()) === 1);
    const closing = db.destroy();
    assert.equal((await last).length, 1);
    await Promise.all([closing, db.destroy()]);
    await assert.rejects(pool.query({ text: 'select 1' }), { name: 'DatabaseUnavailable' });
    assert.equal(await connections(), 0);
  });
});
