import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { readCatalogCounts } from '../../../src/catalog/counts.js';
import { readBounds } from '../../../src/catalog/feed.js';
import { fromRfc3339 } from '../../../src/platform/time/micros.js';
import { findTitle } from '../../../src/catalog/titles.js';
import { batched } from '../../../src/platform/postgres/batch.js';
import { poolOf } from '../../../src/platform/postgres/database.js';
import { DatabaseUnavailable } from '../../../src/platform/postgres/errors.js';
import { batchLoader, type LoadAll } from '../../../src/platform/async/batch-loader.js';
import { Semaphore } from '../../../src/platform/async/semaphore.js';
import { openTestDatabase } from '../../support/database.js';
import { eventually } from '../../support/eventually.js';
import { testWorld } from '../../support/world.js';

/** The most requests that share one query. */
const BATCH = 16;

describe('reads that share queries', () => {
  const world = testWorld();

  async function insertTitle(id: string): Promise<void> {
    await world.db('titles').insert({ svc_id: id, media_type: 'movie', title: `Title of ${id}` });
  }

  /** The queries that something causes. */
  async function queriesOf(act: () => Promise<unknown>): Promise<string[]> {
    const queries: string[] = [];
    const note = ({ sql }: { sql: string }): void => void queries.push(sql);
    world.db.on('query', note);
    await act();
    world.db.off('query', note);
    return queries;
  }

  /** Runs reads while every connection is in use, and commits a title after they were asked for, before any is sent. */
  async function askBeforeCommit<T>(id: string, ask: () => Promise<T>): Promise<T> {
    const pool = poolOf(world.db);
    const held = await Promise.all(Array.from({ length: pool.state.max }, () => pool.connect()));
    const answer = ask();
    await eventually('the query waits for a connection', () => pool.state.waiting > 0);
    await held[0]?.query(`insert into titles (svc_id, media_type, title) values ('${id}', 'movie', 'Late')`);
    for (const connection of held) connection.release();
    return answer;
  }

  it('requests of one turn share a query, each a bounded number of requests', async () => {
    const { db } = world;
    for (const id of ['a', 'b']) await insertTitle(id);
    const queries = await queriesOf(async () => {
      const found = await Promise.all(
        Array.from({ length: BATCH }, (_, i) => findTitle(db, ['a', 'b', 'none'][i % 3] ?? '')),
      );
      assert.deepEqual(
        found.map((title) => title?.svc_id),
        Array.from({ length: BATCH }, (_, i) => ['a', 'b', undefined][i % 3]),
      );
    });
    assert.equal(queries.length, 1);
    for (const read of [readCatalogCounts, readBounds, () => findTitle(db, 'a')]) {
      const many = Array.from({ length: 2 * BATCH + 1 });
      assert.equal((await queriesOf(() => Promise.all(many.map(() => read(db))))).length, 3);
    }
  });

  it('a shared query reads what was committed after its requests arrived and before it was sent', async () => {
    const { db } = world;
    const before = await readCatalogCounts(db);
    const [title, counts, bounds] = await askBeforeCommit('late', () =>
      Promise.all([findTitle(db, 'late'), readCatalogCounts(db), readBounds(db)]),
    );
    assert.equal(title?.title, 'Late');
    assert.equal(counts.titles, before.titles + 1);
    assert.equal(bounds.newest, fromRfc3339(title.updated_at));
  });

  it('no request is answered by a query that was sent before it arrived', async () => {
    const { db } = world;
    const reads = {
      title: () => findTitle(db, 'later'),
      bounds: () => readBounds(db),
    };
    const lock = await db.transaction();
    try {
      await lock.raw('lock table titles in access exclusive mode');
      for (const [i, [what, read]] of Object.entries(reads).entries()) {
        for (const queries of [1, 2]) {
          void read();
          await eventually(`${queries} queries for the ${what} wait`, async () => {
            const { rows } = await lock.raw<{ rows: unknown[] }>(
              "select from pg_locks where relation = 'titles'::regclass and not granted",
            );
            return rows.length === 2 * i + queries;
          });
        }
      }
      await lock('titles').insert({ svc_id: 'later', media_type: 'movie', title: 'Later' });
      await lock.commit();
    } finally {
      if (!lock.isCompleted()) await lock.rollback();
    }
    assert.equal((await findTitle(db, 'later'))?.title, 'Later');
  });

  it('a refused query is repeated for each request alone, and no error quotes another request', async () => {
    const batches: number[] = [];
    const read = batched((_db, keys: readonly string[]) => {
      batches.push(keys.length);
      const bad = keys.find((key) => key.startsWith('bad'));
      return bad === undefined ? Promise.resolve(keys) : Promise.reject(new RangeError(`refused: ${bad}`));
    });
    const outcomes = await Promise.allSettled(['a', 'bad1', 'b', 'bad2'].map((key) => read(world.db, key)));
    assert.deepEqual(
      outcomes.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value : String(outcome.reason))),
      ['a', 'RangeError: refused: bad1', 'b', 'RangeError: refused: bad2'],
    );
    assert.deepEqual(batches, [4, 1, 1, 1, 1]);
  });

  it('a failed query is not repeated while the database is away', async () => {
    let queries = 0;
    const read = batched<string, string>(() => {
      queries += 1;
      return Promise.reject(new DatabaseUnavailable('away'));
    });
    for (const { status } of await Promise.allSettled(['a', 'b', 'c'].map((key) => read(world.db, key)))) {
      assert.equal(status, 'rejected');
    }
    assert.equal(queries, 1);
  });

  it('requests to different databases share no query', async () => {
    const other = await openTestDatabase();
    try {
      const whose = batched((db, keys: readonly string[]) =>
        Promise.resolve(keys.map(() => (db === world.db ? 'first' : 'second'))),
      );
      assert.deepEqual(await Promise.all([whose(world.db, ''), whose(other.db, '')]), ['first', 'second']);
    } finally {
      await other.close();
    }
  });

  /** Ways to make loads share queries. */
  const LOADERS: Readonly<Record<string, (query: LoadAll<number, string>) => (key: number) => Promise<string>>> = {
    'all at once': (query) => {
      const read = batched((_db, keys: readonly number[]) => query(keys));
      return (key) => read(world.db, key);
    },
    'two at a time': (query) => {
      const queries = new Semaphore(2);
      const loadAll: typeof query = async (keys) => {
        try {
          return await query(keys);
        } finally {
          queries.release();
        }
      };
      return batchLoader(loadAll, { maxBatchSize: 3, waitForTurn: () => queries.acquire() });
    },
  };

  for (const [how, loaderOf] of Object.entries(LOADERS)) {
    it(`each request gets its own answer, as of a moment after it arrived, in whatever order queries run, ${how}`, async () => {
      await fc.assert(
        fc.asyncProperty(
          // Each step ends a turn of the event loop, and batches are sent at its end.
          fc.scheduler({ act: (step) => step().then(() => setImmediate()) }),
          fc.array(fc.array(fc.nat(4), { minLength: 1, maxLength: 5 }), { minLength: 2, maxLength: 6 }),
          async (scheduler, turns) => {
            const pass = (): Promise<void> => scheduler.schedule(Promise.resolve());
            let [commits, queries] = [0, 0];
            const load = loaderOf(async (batch) => {
              queries += 1;
              assert.ok(queries <= 2 || how === 'all at once');
              await pass();
              const answers = batch.map((key) => (key === 0 ? new RangeError('given up') : `${key} at ${commits}`));
              await pass();
              queries -= 1;
              return answers;
            });
            const request = async (key: number): Promise<void> => {
              const before = commits;
              const answer = await load(key).catch(String);
              const possible = Array.from({ length: commits - before + 1 }, (_, i) => `${key} at ${before + i}`);
              assert.ok((key === 0 ? ['RangeError: given up'] : possible).includes(answer), `${key} got ${answer}`);
            };
            const requests = turns.map(async (keys) => {
              await pass();
              await Promise.all(keys.map(request));
            });
            const writer = async (): Promise<void> => {
              for (let left = turns.length; left > 0; left -= 1) await pass().then(() => (commits += 1));
            };
            await scheduler.waitFor(Promise.all([...requests, writer()]));
          },
        ),
        { numRuns: 100 },
      );
    });
  }
});
