import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { fromRfc3339, toRfc3339 } from '../../src/platform/time/micros.js';
import { addTitles, databaseClock, emptyCatalogue, insertTitle, stampOf, writersWait } from '../support/titles.js';
import { testWorld } from '../support/world.js';

const HOUR = 3_600_000_000n;

describe('the stamps of the feed', () => {
  const world = testWorld();
  let db: Knex;

  beforeEach(async () => {
    ({ db } = world);
    await emptyCatalogue(db);
  });

  async function stamps(): Promise<string[]> {
    return db('titles').orderBy('updated_at').pluck('updated_at');
  }

  /** The clock's whole second, after which the next stamps are predictable. */
  async function wholeClock(): Promise<bigint> {
    return ((await databaseClock(db)) / 1_000_000n) * 1_000_000n;
  }

  it('stamps differ within one statement, and are close to its time', async () => {
    const before = await databaseClock(db);
    await addTitles(db, 5_000);
    const after = await databaseClock(db);
    const all = (await stamps()).map(fromRfc3339);
    assert.equal(new Set(all).size, 5_000);
    for (const stamp of all) assert.ok(before < stamp && stamp < after + 5_000n);
  });

  it('stamps never end in 0, however a row is written, so that as seconds they always have six decimals', async () => {
    const assertSixDecimals = async (count: number): Promise<void> => {
      const all = await stamps();
      assert.equal(all.length, count);
      assert.deepEqual(
        all.filter((stamp) => stamp.endsWith('0Z')),
        [],
      );
    };
    await addTitles(db, 2_000);
    await assertSixDecimals(2_000);
    await db('titles').update({ has_bundles: true });
    await assertSixDecimals(2_000);
    const at = '2026-11-20T00:00:00Z';
    const rows = Array.from({ length: 100 }, (_, i) => ({ svc_id: `own-${i}`, media_type: 'movie', title: 'T' }));
    await db('titles').insert(rows.map((row) => ({ ...row, created_at: at })));
    for (const row of rows.slice(0, 20)) await db('titles').insert({ ...row, svc_id: `alone-${row.svc_id}` });
    await assertSixDecimals(2_120);
    assert.equal(await db('titles').whereRaw('created_at > updated_at').first(), undefined);
  });

  it('stamps are later than every earlier one, also where a statement supplies the last number that was drawn', async () => {
    const last = "timestamptz 'epoch' + currval('titles_last_stamp') * interval '1 microsecond'";
    // Ahead of the clock, so that the statement begins with the number that was drawn last.
    for (const drawn of [0n, 3n]) {
      const ahead = (await wholeClock()) + HOUR + drawn;
      await db.raw("select setval('titles_last_stamp', ?)", [String(ahead)]);
      await db.raw(
        `insert into titles (svc_id, media_type, title, created_at) values ('own-${drawn}', 'movie', 'T', ${last})`,
      );
      const stamp = await stampOf(db, `own-${drawn}`);
      assert.ok(stamp > ahead && stamp % 10n !== 0n, `${stamp} after ${ahead}`);
    }
    await assert.rejects(
      db.raw(`insert into titles (svc_id, media_type, title, created_at)
              values ('first', 'movie', 'T', default), ('second', 'movie', 'T', ${last})`),
      { constraint: 'titles_updated_at_unique' },
    );
  });

  it('stamps are later for a writer that waits than for the writer before it', async () => {
    const first = await db.transaction();
    const second = await db.transaction();
    await insertTitle(first, 'first');
    const blocked = insertTitle(second, 'second');
    await writersWait(db);
    const whileWaiting = await databaseClock(db);
    await insertTitle(first, 'last-of-first');
    await first.commit();
    await blocked;
    await second.commit();
    assert.ok((await stampOf(db, 'first')) < whileWaiting);
    assert.ok((await stampOf(db, 'last-of-first')) < (await stampOf(db, 'second')));
    assert.ok((await stampOf(db, 'second')) > whileWaiting);
  });

  it('stamps make writers of every kind wait before they lock a row', async () => {
    await db('people').insert({ svc_id: 'p', name: 'P' });
    await insertTitle(db, 'there');
    const first = await db.transaction();
    await insertTitle(first, 'first');
    const writes: (() => Promise<unknown>)[] = [
      async () => db('titles').where({ svc_id: 'there' }).update({ title: 'New' }),
      () => insertTitle(db, 'new'),
      async () => {
        await db.raw(
          "insert into titles (svc_id, media_type, title) values ('there', 'movie', 'x') on conflict do nothing",
        );
      },
      async () => db('people').insert({ svc_id: 'q', name: 'Q' }),
      async () => db('people').update({ name: 'R' }),
      async () => db('people').delete(),
      async () => db('collections').insert({ svc_id: 'c', name: 'C' }),
    ];
    const blocked = writes.map((write) => write());
    await writersWait(db, blocked.length);
    // None of them has locked the row that the first writer updates now.
    await first('titles').where({ svc_id: 'there' }).update({ title: 'First' });
    await first.commit();
    await Promise.all(blocked);
  });

  it('stamps are never reused after a rollback', async () => {
    const ahead = (await wholeClock()) + HOUR;
    await db.raw("select setval('titles_last_stamp', ?)", [String(ahead)]);
    const rolledBack = await db.transaction();
    await insertTitle(rolledBack, 'gone');
    const gone = await stampOf(rolledBack, 'gone');
    await rolledBack.rollback();
    await insertTitle(db, 'kept');
    assert.deepEqual([gone, await stampOf(db, 'kept')], [ahead + 1n, ahead + 11n]);
  });

  it('stamps increase by a few microseconds while the clock is behind the last stamp', async () => {
    const ahead = (await wholeClock()) + 2n * HOUR;
    await db.raw("select setval('titles_last_stamp', ?)", [String(ahead)]);
    await addTitles(db, 3);
    await db('titles').where({ svc_id: 'title-0001' }).update({ title: 'New' });
    assert.deepEqual(await stamps(), [ahead + 2n, ahead + 3n, ahead + 11n].map(toRfc3339));
    assert.equal(await stampOf(db, 'title-0001'), ahead + 11n);
  });
});
