import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Knex } from 'knex';
import { asPosition } from '../../../src/catalog/since.js';
import { fromRfc3339, systemClock, toSeconds, type Micros } from '../../../src/platform/time/micros.js';
import type { Answer } from '../../../src/contract.js';
import { eventually } from '../../support/eventually.js';
import { assertProblem } from '../../support/problem.js';
import type { Reply } from '../../support/request.js';
import { startService, type TestService } from '../../support/service.js';
import { addTitleAt, addTitles, changesOf, removeTitles, titleIds } from '../../support/titles.js';

const SECOND: Micros = 1_000_000n;
const HOUR = 3_600n * SECOND;
const DAY = 24n * HOUR;
const WINDOW = 30n * DAY;

describe('the window of GET /api/v1/changes', () => {
  let service: TestService;
  /** The service's clock, where a test sets it. */
  let now: Micros | undefined;

  before(async () => {
    service = await startService({ now: () => now ?? systemClock() });
  });

  after(() => service.stop());

  beforeEach(async () => {
    now = undefined;
    await removeTitles(service.db);
    await service.db.raw("select setval('titles_last_stamp', 0)");
  });

  function send(since: Micros): Promise<Reply> {
    const seconds = `${since / SECOND}.${String(since % SECOND).padStart(6, '0')}`;
    return service.get(`/api/v1/changes?since=${seconds}`);
  }

  async function ask(since: Micros): Promise<{ ids: string[]; next: Micros; meta: Answer<'getChanges'>['meta'] }> {
    const { data, meta } = changesOf(await send(since));
    return { ids: data.map(({ svc_id: id }) => id), next: BigInt(Math.round(meta.next_since * 1e6)), meta };
  }

  /** The newest position that is committed, or that a writer sees. */
  async function newest(db: Knex = service.db): Promise<Micros> {
    const [stamp = ''] = await db('titles').orderBy('updated_at', 'desc').limit(1).pluck<string[]>('updated_at');
    return fromRfc3339(stamp);
  }

  it('reaches back exactly 30 days', async () => {
    now = 1_795_218_005_123_456n;
    assert.equal((await send(now - WINDOW)).status, 200);
    assertProblem(await send(now - WINDOW - 1n), 'since_out_of_window', {
      detail:
        'since is more than 30 days in the past, further than the feed reaches. Get a fresh copy of the catalogue from its operator and follow from the position that comes with it. Or continue from oldest_since, which is accepted for another minute, without the changes in between.',
      members: { oldest_since: 1792626065.123456 },
    });
    assertProblem(await send(0n), 'since_out_of_window', { members: { oldest_since: 1792626065.123456 } });
    assert.equal((await service.get('/api/v1/changes?since=1792626005.123456')).status, 200);
  });

  it('reaches ahead exactly 60 seconds', async () => {
    // Where the clocks differ, the later one counts.
    now = systemClock() + HOUR;
    assert.equal((await send(now + 60n * SECOND)).status, 200);
    assertProblem(await send(now + 60n * SECOND + 1n), 'invalid_since', {
      detail: 'since lies more than 60 seconds in the future. Send Unix time in seconds, and check your clock.',
    });
    for (const unit of [1_000n, 1_000_000n, 1_000_000_000n]) {
      assertProblem(await send(now * unit), 'invalid_since', {
        detail:
          'since lies far in the future and looks like milliseconds or a finer unit. Send seconds: divide milliseconds by 1000.',
      });
    }
  });

  it('takes a position from a server whose clock is right, where its own is an hour behind', async () => {
    await addTitles(service.db, 1);
    const { next } = await ask(systemClock());
    now = systemClock() - HOUR;
    assert.ok(next > now + 60n * SECOND);
    assert.deepEqual((await ask(next)).ids, []);
    assertProblem(await send(systemClock() + HOUR), 'invalid_since');
    await addTitles(service.db, 1, 'later');
    assert.deepEqual((await ask(next)).ids, ['later-0001']);
  });

  it('lets a client begin at the present moment, and loses nothing of a writer that is at work', async () => {
    await addTitles(service.db, 1);
    const writer = await service.db.transaction();
    await addTitles(writer, 2, 'during');
    const stamp = await newest(writer);
    // This clock has whole milliseconds.
    await eventually('the present moment is later than the stamps', () => systemClock() > stamp);
    const page = await ask(systemClock());
    assert.deepEqual(page.ids, []);
    await writer.commit();
    assert.deepEqual((await ask(page.next)).ids, titleIds(2, 'during'));
  });

  describe('ahead of the clock', () => {
    it('answers an empty page, from which nothing that is written later is lost', async () => {
      await addTitles(service.db, 2);
      const before = await newest();
      for (const ahead of [SECOND, 10n * SECOND, 60n * SECOND]) {
        now = systemClock();
        const page = await ask(now + ahead);
        now = undefined;
        assert.deepEqual(page, { ids: [], next: before, meta: { has_more: false, next_since: toSeconds(before) } });
      }
      const page = await ask(systemClock() + 30n * SECOND);
      await addTitles(service.db, 3, 'later');
      assert.deepEqual((await ask(page.next)).ids, titleIds(3, 'later'));
    });

    it('loses nothing of a writer that is at work', async () => {
      await addTitles(service.db, 1);
      const writer = await service.db.transaction();
      await addTitles(writer, 2, 'during');
      const page = await ask(systemClock() + 30n * SECOND);
      assert.deepEqual(page.ids, []);
      await writer.commit();
      assert.deepEqual((await ask(page.next)).ids, titleIds(2, 'during'));
    });

    it('goes on within the window where the newest entry has left it, and where there is none', async () => {
      for (const age of [undefined, 20n * DAY, 29n * DAY, 31n * DAY, 400n * DAY]) {
        await removeTitles(service.db);
        if (age !== undefined) await addTitleAt(service.db, 'old', asPosition(systemClock() - age));
        const page = await ask(systemClock() + 30n * SECOND);
        assert.deepEqual([page.ids, page.meta.has_more], [[], false]);
        const distance = systemClock() - page.next;
        assert.ok(distance > 23n * HOUR && distance < 25n * HOUR, `${distance} µs`);
        await addTitles(service.db, 1, 'new');
        assert.deepEqual((await ask(page.next)).ids, ['new-0001']);
      }
    });

    it('goes on within the window while a first writer is at work', async () => {
      for (const age of [undefined, 20n * DAY, 400n * DAY]) {
        await removeTitles(service.db);
        if (age !== undefined) await addTitleAt(service.db, 'old', asPosition(systemClock() - age));
        const writer = await service.db.transaction();
        await addTitles(writer, 1, 'new');
        const page = await ask(systemClock() + 30n * SECOND);
        assert.deepEqual(page.ids, []);
        await writer.commit();
        assert.deepEqual((await ask(page.next)).ids, ['new-0001']);
      }
    });
  });

  describe('in a quiet catalogue', () => {
    it('does not pass a follower by, whose visits lie up to half the window apart', async () => {
      const real = systemClock();
      const gaps = fc.array(fc.bigInt({ min: SECOND, max: 15n * DAY }), { minLength: 1, maxLength: 12 });
      await fc.assert(
        fc.asyncProperty(gaps, fc.bigInt({ min: 0n, max: WINDOW - SECOND }), async (visits, age) => {
          const total = visits.reduce((sum, gap) => sum + gap, 0n);
          const begin = real - HOUR - total;
          now = begin;
          await removeTitles(service.db);
          const old = asPosition(begin - age);
          await addTitleAt(service.db, 'old', old);
          const first = await ask(old - 1n);
          assert.deepEqual(first.ids, ['old']);
          let { next } = first;
          for (const gap of visits) {
            now += gap;
            const page = await ask(next);
            assert.deepEqual(page.ids, []);
            assert.ok(page.next >= next && page.next < now, 'forward, and not past the clock');
            ({ next } = page);
          }
          await addTitles(service.db, 1, 'new');
          now = undefined;
          assert.deepEqual((await ask(next)).ids, ['new-0001']);
        }),
        { numRuns: 30 },
      );
    });

    it('moves on from the last entry too, when that one is old', async () => {
      await addTitleAt(service.db, 'old', systemClock() - 29n * DAY);
      const page = await ask(systemClock() - 29n * DAY - SECOND);
      assert.deepEqual([page.ids, page.meta.has_more], [['old'], false]);
      now = systemClock() + 5n * DAY;
      assert.deepEqual((await ask(page.next)).ids, []);
    });

    it('leaves a position where it is while it is not old, and while pages follow', async () => {
      const since = systemClock() - 14n * DAY;
      assert.deepEqual(await ask(since), {
        ids: [],
        next: since,
        meta: { has_more: false, next_since: toSeconds(since) },
      });
      const old = systemClock() - 20n * DAY;
      for (let i = 0n; i < 201n; i += 1n) await addTitleAt(service.db, `t${i}`, old + i);
      const page = await ask(old - 1n);
      assert.deepEqual([page.ids.length, page.meta.has_more, page.next], [200, true, old + 199n]);
    });

    it('waits for a writer at work, and delivers what it writes', async () => {
      const since = systemClock() - 20n * DAY;
      for (const table of ['titles', 'people']) {
        const writer = await service.db.transaction();
        if (table === 'titles') await addTitles(writer, 2, 'late');
        else await writer('people').insert({ svc_id: 'p', name: 'P' });
        assert.deepEqual(await ask(since), {
          ids: [],
          next: since,
          meta: { has_more: false, next_since: toSeconds(since) },
        });
        await writer.rollback();
      }
      const writer = await service.db.transaction();
      await addTitles(writer, 2, 'late');
      const held = await ask(since);
      await writer.commit();
      assert.deepEqual((await ask(held.next)).ids, titleIds(2, 'late'));
    });

    it('moves a position up to a day before the earlier of both clocks', async () => {
      const since = systemClock() - 20n * DAY;
      const before = systemClock();
      const { next } = await ask(since);
      assert.ok(before - DAY <= next + SECOND && next <= systemClock() - DAY + SECOND);

      now = systemClock() - 3n * HOUR;
      assert.equal((await ask(since)).next, now - DAY - 1n, 'rounded down, so that it does not end in 0');

      now = systemClock() + 9n * DAY;
      const ahead = (await ask(since)).next;
      assert.ok(ahead <= systemClock() - DAY + SECOND, "not past the database's clock");
    });
  });

  describe('where the feed runs ahead of the clock', () => {
    it('gives a follower every entry', async () => {
      // A multiple of 1,000, as this clock's are.
      const ahead = systemClock() + 2n * HOUR;
      await service.db.raw("select setval('titles_last_stamp', ?)", [String(ahead)]);
      await addTitles(service.db, 250);
      const first = await ask(systemClock() - SECOND);
      // Each tenth microsecond is no stamp.
      assert.deepEqual([first.ids, first.next], [titleIds(200), ahead + 222n]);
      const second = await ask(first.next);
      assert.deepEqual([second.ids, second.next], [titleIds(250).slice(200), ahead + 277n]);
      const third = await ask(second.next);
      assert.deepEqual(third, {
        ids: [],
        next: ahead + 277n,
        meta: { has_more: false, next_since: second.meta.next_since },
      });

      await service.db('titles').where({ svc_id: 'title-0007' }).update({ title: 'New' });
      const fourth = await ask(third.next);
      assert.deepEqual([fourth.ids, fourth.next], [['title-0007'], ahead + 278n]);

      // A client whose clock is a little ahead gets what lies after it, rather than an empty page.
      assert.equal((await ask(systemClock() + 30n * SECOND)).ids.length, 200);
      assertProblem(await send(fourth.next + 1n), 'invalid_since', { detail: /more than 60 seconds in the future/ });
    });
  });
});
