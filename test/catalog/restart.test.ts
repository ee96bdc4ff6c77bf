import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { readBounds } from '../../src/catalog/feed.js';
import { restartFeed } from '../../src/catalog/restart.js';
import { type Micros } from '../../src/platform/time/micros.js';
import {
  addTitleAt,
  addTitles,
  databaseClock,
  emptyCatalogue,
  insertTitle,
  stampOf,
  writersWait,
} from '../support/titles.js';
import { testWorld } from '../support/world.js';

const SECOND: Micros = 1_000_000n;
const HOUR = 3_600n * SECOND;
const DAY = 24n * HOUR;

describe('a restart of the feed', () => {
  const world = testWorld();
  let db: Knex;

  beforeEach(async () => {
    ({ db } = world);
    await emptyCatalogue(db);
  });

  /** Checks for a whole second that lies between 60 and 61 seconds after a moment. */
  function assertMinuteAfter(feedStart: Micros, moment: Micros): void {
    assert.equal(feedStart % SECOND, 0n);
    assert.ok(
      feedStart > moment + 60n * SECOND && feedStart <= moment + 61n * SECOND,
      `${feedStart - moment} µs after`,
    );
  }

  it('a restart sets the feed start to a minute after the clock, and gives the feed another identity', async () => {
    await addTitles(db, 2);
    const before = await databaseClock(db);
    const identity = await db('catalog_feed').pluck<string[]>('identity');
    const { feedStart, clock: at } = await restartFeed(db);
    assert.notDeepEqual(await db('catalog_feed').pluck('identity'), identity);
    assert.ok(before < at && at < (await databaseClock(db)));
    assertMinuteAfter(feedStart, at);
    assert.deepEqual(await readBounds(db), { feedStart, newest: feedStart });
  });

  it('a restart sets the feed start to a minute after whatever is ahead of the clock', async () => {
    const ahead = (await databaseClock(db)) + HOUR;
    await addTitleAt(db, 'ahead', ahead);
    assertMinuteAfter((await restartFeed(db)).feedStart, ahead);
    await db.raw("select setval('titles_last_stamp', ?)", [String(ahead + HOUR)]);
    assertMinuteAfter((await restartFeed(db)).feedStart, ahead + HOUR);
    const nearlyADay = (await databaseClock(db)) + DAY;
    assertMinuteAfter((await restartFeed(db, { after: nearlyADay })).feedStart, nearlyADay);
    // Even if the sequence has been set back.
    const { feedStart } = await restartFeed(db);
    await db.raw("select setval('titles_last_stamp', 0)");
    assertMinuteAfter((await restartFeed(db, { after: 0n })).feedStart, feedStart);
  });

  it('a restart makes every later commit have a later stamp', async () => {
    const early = await db.transaction();
    await early.raw('select 1');
    const { feedStart } = await restartFeed(db);
    await insertTitle(early, 'begun-before');
    await early.commit();
    await insertTitle(db, 'begun-after');
    assert.ok(feedStart < (await stampOf(db, 'begun-before')));
    assert.ok((await stampOf(db, 'begun-before')) < (await stampOf(db, 'begun-after')));
  });

  it('a restart waits for an active writer, and sets the feed start after the stamps of that writer', async () => {
    const ahead = (await databaseClock(db)) + HOUR;
    const writer = await db.transaction();
    await insertTitle(writer, 'first');
    const restarting = restartFeed(db);
    await writersWait(db);
    // The stamps get ahead of the clock while the restart waits.
    await db.raw("select setval('titles_last_stamp', ?)", [String(ahead)]);
    await insertTitle(writer, 'second');
    await writer.commit();
    const { feedStart } = await restarting;
    assertMinuteAfter(feedStart, await stampOf(db, 'second'));
  });

  it('a restart changes nothing if writers keep the lock for too long, or a position lies more than a day ahead', async () => {
    await addTitles(db, 1);
    const before = await readBounds(db);
    const writer = await db.transaction();
    await addTitles(writer, 1, 'writing');
    await assert.rejects(restartFeed(db, { lockTimeoutMs: 50 }), {
      name: 'OperatorError',
      message: /^Writers have kept the catalogue locked for 0\.05 s\. The feed is unchanged\.$/,
    });
    await writer.rollback();
    await assert.rejects(restartFeed(db, { after: (await databaseClock(db)) + DAY + 600n * SECOND }), {
      name: 'OperatorError',
      message: /is more than a day ahead of the database's clock, 20/,
    });
    assert.deepEqual(await readBounds(db), before);
    await insertTitle(db, 'next');
    assert.ok((await stampOf(db, 'next')) <= (await databaseClock(db)));
  });
});
