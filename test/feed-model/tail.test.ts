import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { repairCounts } from '../../src/catalog/counts.js';
import { readBounds, readFeed, readFeedClock, readNewestEntries } from '../../src/catalog/feed.js';
import { fromRfc3339 } from '../../src/platform/time/micros.js';
import { connectTo } from '../support/database.js';
import type { Statement } from '../support/service.js';
import { addTitles, insertTitle, writersWait } from '../support/titles.js';
import { testWorld } from '../support/world.js';

/** Rows of a writer that is active. To pass over them, PostgreSQL reads hundreds of buffers, and the heap of each. */
const UNCOMMITTED = 100_000;

/** More than a reading needs at this size: the ways down the index, and the rows of the counts and the feed. */
const MOST_BUFFERS = 40;

/** The readings of a poll at the tail, and of a page that shows what changed last. */
const READINGS: Readonly<Record<string, (db: Knex, position: bigint) => Promise<unknown>>> = {
  'the page': (db, position) => readFeed(db, position),
  'the bounds': (db) => readBounds(db),
  'the clock': (db) => readFeedClock(db),
  'the newest entry': (db) => readNewestEntries(db, 1),
};

describe('the tail of the feed', () => {
  const world = testWorld({ each: true });
  let reader: Knex;
  let sent: Statement[];

  beforeEach(() => {
    sent = [];
    reader = connectTo(world.url, { poolSize: 1 });
    reader.on('query', (statement: Statement) => sent.push(statement));
    world.defer(() => reader.destroy());
  });

  async function buffersOf({ sql, bindings }: Statement): Promise<number> {
    const values = bindings.map((value) => (value === null ? 'null' : `'${value as string | number}'`));
    await reader.raw(`prepare reading as ${sql}`);
    const { rows } = await reader.raw<{
      rows: [{ 'QUERY PLAN': [{ Plan: Readonly<Record<'Shared Hit Blocks' | 'Shared Read Blocks', number>> }] }];
    }>(`explain (analyze, buffers, format json) execute reading ${values.length > 0 ? `(${values.join(', ')})` : ''}`);
    await reader.raw('deallocate reading');
    const [{ Plan: plan }] = rows[0]['QUERY PLAN'];
    return plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
  }

  /** Requires that a poll at the newest entry finds it as the newest, and reads little. */
  async function assertCheap(when: string, svcId: string): Promise<void> {
    const [newest] = await readNewestEntries(reader, 1);
    assert.equal(newest?.svc_id, svcId, when);
    const position = fromRfc3339(newest.updated_at);
    const page = await readFeed(reader, position);
    assert.deepEqual([page.entries, page.followsEntry, page.hasMore], [[], true, false], when);
    assert.equal((await readBounds(reader)).newest, position);
    for (const [what, read] of Object.entries(READINGS)) {
      sent = [];
      await read(reader, position);
      const [statement = assert.fail()] = sent;
      const buffers = await buffersOf(statement);
      assert.ok(buffers <= MOST_BUFFERS, `${what} ${when}: ${buffers} buffers`);
    }
  }

  it('is read without the rows that a writer has not committed, that it has rolled back, or that wait for it', async () => {
    await addTitles(world.db, UNCOMMITTED);
    await insertTitle(world.db, 'newest');
    await world.db.raw('vacuum analyze titles');
    const writer = await world.db.transaction();
    // More than one statement, whose order at the tail matters.
    await writer.raw("update titles set title = title || '.' where svc_id <> 'newest'");
    await writer.raw("update titles set has_bundles = true where svc_id = 'newest'");
    await assertCheap('beside uncommitted rows', 'newest');
    const waiting = insertTitle(world.db, 'waited');
    await writersWait(world.db);
    await assertCheap('beside two writers', 'newest');
    await writer.rollback();
    await waiting;
    await assertCheap('after a rollback', 'waited');
  });

  it('ends with the newest title, however it was written', async () => {
    const insert = (id: string): string =>
      `insert into titles (svc_id, media_type, title) values ('${id}', 'movie', 'T')`;
    const update = (id: string): string => `update titles set title = title || '.' where svc_id = '${id}'`;
    const replica = 'set session_replication_role = replica';
    const stamped = `insert into titles (svc_id, media_type, title, created_at, updated_at)
      select 'copied', 'movie', 'T', max(updated_at), max(updated_at) + interval '11 us' from titles`;
    const WRITES: readonly (readonly [newest: string, ...statements: string[]])[] = [
      ['a', insert('a')],
      ['b', 'begin', insert('b'), 'commit'],
      ['a', update('a')],
      ['b', 'begin', update('a'), update('b'), 'commit'],
      ['a', 'begin', update('b'), update('b'), update('b'), update('a'), 'commit'],
      ['b', 'begin', insert('c'), update('c'), update('a'), update('b'), 'commit'],
      ['c', 'begin', update('c'), 'savepoint s', update('a'), update('b'), 'rollback to s', 'commit'],
      ['a', 'begin', 'savepoint s', update('b'), 'rollback to s', update('b'), update('a'), 'commit'],
      ['b', 'begin', update('a'), 'savepoint s', update('a'), 'release s', update('b'), 'commit'],
      ['a', 'begin', 'set constraints all immediate', update('b'), update('c'), update('c'), update('a'), 'commit'],
      ['a', 'begin', update('b'), 'rollback'],
      ['b', "insert into people (svc_id, name) values ('p', 'P')", update('b')],
      ['b', 'begin', "update people set name = 'Q'", "delete from people where svc_id = 'p'", 'commit'],
      ['c', `${insert('c')} on conflict (svc_id) do update set title = 'upserted'`],
      ['c', `${insert('a')} on conflict do nothing`],
      ['copied', replica, stamped],
      ['a', replica, stamped.replace('copied', 'copied-2'), 'set session_replication_role = origin', update('a')],
    ];
    for (const [newest, ...statements] of WRITES) {
      for (const statement of statements) await reader.raw(statement);
      await reader.raw('set session_replication_role = origin');
      const { entries } = await readFeed(reader, 1n);
      assert.equal(entries.at(-1)?.svc_id, newest, statements.join('; '));
      assert.equal(entries.length, (await world.db('titles')).length, statements.join('; '));
    }
    // What is written past all triggers appears once the counts are repaired.
    await world.db.raw(`alter table titles disable trigger all; ${stamped.replace('copied', 'late')}`);
    await world.db.raw('alter table titles enable trigger all');
    await repairCounts(world.db);
    assert.equal((await readFeed(reader, 1n)).entries.at(-1)?.svc_id, 'late');
    // Without the row of the counts there is no bound.
    await world.db('catalog_counts').delete();
    assert.equal((await readFeed(reader, 1n)).entries.at(-1)?.svc_id, 'late');
  });
});
