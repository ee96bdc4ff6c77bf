import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { readBounds } from '../../src/catalog/feed.js';
import { restartFeed } from '../../src/catalog/restart.js';
import { fromRfc3339, type Micros } from '../../src/platform/time/micros.js';
import { eventually } from '../support/eventually.js';
import { addTitleAt, addTitles } from '../support/titles.js';
import { testWorld } from '../support/world.js';

const SECOND: Micros = 1_000_000n;
const HOUR = 3_600n * SECOND;
const DAY = 24n * HOUR;

describe('a restart of the feed', () => {
  const world = testWorld({ each: true });
  let db: Knex;

  beforeEach(() => {
    ({ db } = world);
  });

  async function clock(): Promise<Micros> {
    const { rows } = await db.raw<{ rows: [{ now: string }] }>('select clock_timestamp() as now');
    return fromRfc3339(rows[0].now);
  }

  async function stampOf(svcId: string): Promise<Micros> {
    const [stamp = ''] = await db('titles').where({ svc_id: svcId }).pluck<string[]>('updated_at');
    return fromRfc3339(stamp);
  }

  function insert(on: Knex, svcId: string): Promise<unknown> {
    return on('titles').insert({ svc_id: svcId, media_type: 'movie', title: 'T' }).then();
  }

  /** Checks for a whole second that lies between 60 and 61 seconds after a moment. */
  function assertMinuteAfter(start: Micros, moment: Micros): void {
    assert.equal(start % SECOND, 0n);
    assert.ok(start > moment + 60n * SECOND && start <= moment + 61n * SECOND, `${start - moment} µs after`);
  }

  it('sets the feed start to a minute after the clock', async () => {
    await addTitles(db, 2);
    const before = await clock();
    const { start, clock: at } = await restartFeed(db);
    assert.ok(before < at && at < (await clock()));
    assertMinuteAfter(start, at);
    assert.deepEqual(await readBounds(db), { start, newest: start });
  });

  it('sets the feed start to a minute after whatever is ahead of the clock', async () => {
    const ahead = (await clock()) + HOUR;
    await addTitleAt(db, 'ahead', ahead);
    assertMinuteAfter((await restartFeed(db)).start, ahead);
    await db.raw("select setval('titles_last_stamp', ?)", [String(ahead + HOUR)]);
    assertMinuteAfter((await restartFeed(db)).start, ahead + HOUR);
    assertMinuteAfter((await restartFeed(db, { after: ahead + 2n * HOUR })).start, ahead + 2n * HOUR);
    // Even if the sequence has been set back.
    const { start } = await restartFeed(db);
    await db.raw("select setval('titles_last_stamp', 0)");
    assertMinuteAfter((await restartFeed(db, { after: 0n })).start, start);
  });

  it('makes every later commit have a later stamp', async () => {
    const early = await db.transaction();
    await early.raw('select 1');
    const { start } = await restartFeed(db);
    await insert(early, 'begun-before');
    await early.commit();
    await insert(db, 'begun-after');
    assert.ok(start < (await stampOf('begun-before')));
    assert.ok((await stampOf('begun-before')) < (await stampOf('begun-after')));
  });

  it('waits for an active writer, and sets the feed start after the stamps of that writer', async () => {
    const ahead = (await clock()) + HOUR;
    const writer = await db.transaction();
    await insert(writer, 'first');
    const restarting = restartFeed(db);
    await eventually('the restart waits', async () => {
      const waiting = await db('pg_locks').where({ locktype: 'advisory', granted: false });
      return waiting.length === 1;
    });
    // The stamps get ahead of the clock while the restart waits.
    await db.raw("select setval('titles_last_stamp', ?)", [String(ahead)]);
    await insert(writer, 'second');
    await writer.commit();
    const { start } = await restarting;
    assertMinuteAfter(start, await stampOf('second'));
  });

  for (const [what, act, message] of [
    [
      'writers keep the lock for too long',
      'write',
      /^Writers have kept the catalogue locked for 0\.05 s\. Wait for them/,
    ],
    ['a position lies more than a day ahead', 'far', /is more than a day ahead of the database's clock, 20/],
  ] as const) {
    it(`does not change the feed if ${what}`, async () => {
      await addTitles(db, 1);
      const before = await readBounds(db);
      const writer = await db.transaction();
      if (act === 'write') await addTitles(writer, 1, 'writing');
      const options = act === 'write' ? { lockTimeoutMs: 50 } : { after: (await clock()) + DAY + 10n * SECOND };
      await assert.rejects(restartFeed(db, options), { name: 'OperatorError', message });
      await writer.rollback();
      assert.deepEqual(await readBounds(db), before);
      await insert(db, 'next');
      assert.ok((await stampOf('next')) <= (await clock()));
    });
  }

  it('accepts a position that lies nearly a day ahead', async () => {
    const after = (await clock()) + DAY;
    assertMinuteAfter((await restartFeed(db, { after })).start, after);
  });
});
