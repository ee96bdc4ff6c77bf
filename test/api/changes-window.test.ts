import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { restartFeed } from '../../src/catalog/restart.js';
import { asPosition } from '../../src/catalog/since.js';
import type { Answer } from '../../src/contract.js';
import { fromRfc3339, systemClock, toRfc3339, toSeconds, type Micros } from '../../src/platform/time/micros.js';
import { installClock } from '../support/postgres/model-clock.js';
import { pastTriggers } from '../support/postgres/past-triggers.js';
import { untilWaiting } from '../support/postgres/until-waiting.js';
import { assertProblem } from '../support/problem.js';
import type { Reply, RequestOptions } from '../support/request.js';
import { startService, type TestService } from '../support/service.js';
import { addTitleAt, addTitles, changesOf, emptyCatalogue, removeTitles, titleIds } from '../support/titles.js';

const SECOND: Micros = 1_000_000n;
const MINUTE = 60n * SECOND;
const HOUR = 60n * MINUTE;
const DAY = 24n * HOUR;
const WINDOW = 30n * DAY;

const RESTARTED =
  'since is earlier than the time at which the catalogue was restored, and responses of the feed from before then are no longer valid. Get a copy of the catalogue made after that time and follow from the position that comes with it. Without a position, follow from an hour before the copy was started, or from oldest_since if that is later.';
const TOO_OLD =
  'since is more than 30 days in the past, further back than the feed reaches. Get a fresh copy of the catalogue from its operator and follow from the position that comes with it. Or continue from oldest_since, which is accepted for another minute, and miss the changes in between.';

describe('positions of GET /api/v1/changes', () => {
  let service: TestService;
  /** The service's clock, where a test sets it. */
  let now: Micros | undefined;

  before(async () => {
    service = await startService({ now: () => now ?? systemClock() });
  });

  after(() => service.stop());

  beforeEach(async () => {
    now = undefined;
    await emptyCatalogue(service.db);
  });

  function send(since: Micros, options?: RequestOptions): Promise<Reply> {
    const seconds = `${since / SECOND}.${String(since % SECOND).padStart(6, '0')}`;
    return service.get(`/api/v1/changes?since=${seconds}`, options);
  }

  async function get(since: Micros): Promise<{ ids: string[]; next: Micros; meta: Answer<'getChanges'>['meta'] }> {
    const { data, meta } = changesOf(await send(since));
    return { ids: data.map(({ svc_id: id }) => id), next: BigInt(Math.round(meta.next_since * 1e6)), meta };
  }

  async function assertRefused(since: Micros, oldest: Micros, detail = RESTARTED): Promise<void> {
    assertProblem(await send(since), 'since_out_of_window', { detail, members: { oldest_since: toSeconds(oldest) } });
  }

  /** The newest stamp that a connection can see. */
  async function newest(db: Knex = service.db): Promise<Micros> {
    const [stamp = ''] = await db('titles').orderBy('updated_at', 'desc').limit(1).pluck<string[]>('updated_at');
    return fromRfc3339(stamp);
  }

  describe('the window', () => {
    it('the feed reaches back exactly 30 days', async () => {
      now = 1_795_218_005_123_456n;
      assert.equal((await send(now - WINDOW)).status, 200);
      await assertRefused(now - WINDOW - 1n, now - WINDOW + MINUTE, TOO_OLD);
      await assertRefused(0n, now - WINDOW + MINUTE, TOO_OLD);
    });

    it('a position may lie 60 seconds ahead of the later clock', async () => {
      now = systemClock() + HOUR;
      assert.equal((await send(now + MINUTE)).status, 200);
      assertProblem(await send(now + MINUTE + 1n), 'invalid_since', {
        detail: 'since is more than 60 seconds in the future. Send Unix time in seconds, and check your clock.',
      });
      assertProblem(await send(now * 1_000n), 'invalid_since', {
        detail:
          'since is far in the future and looks like milliseconds or a finer unit. Send seconds: divide milliseconds by 1000.',
      });
      // The clock of this server is an hour behind that of the database.
      now = undefined;
      const { next } = await get(systemClock());
      now = systemClock() - HOUR;
      assert.ok(next > now + MINUTE);
      await addTitles(service.db, 1);
      assert.deepEqual((await get(next)).ids, titleIds(1));
    });

    it('an empty page ahead of the clock continues from a position before everything that is committed later', async () => {
      for (const age of [undefined, SECOND, 20n * DAY, 31n * DAY, 400n * DAY]) {
        await removeTitles(service.db);
        if (age !== undefined) await addTitleAt(service.db, 'old', asPosition(systemClock() - age));
        const writer = await service.db.transaction();
        await addTitles(writer, 1, 'during');
        const page = await get(systemClock() + 30n * SECOND);
        assert.deepEqual([page.ids, page.meta.has_more], [[], false]);
        assert.ok(page.next > systemClock() - WINDOW);
        await writer.commit();
        await addTitles(service.db, 1, 'later');
        assert.deepEqual((await get(page.next)).ids, ['during-0001', 'later-0001']);
      }
    });
  });

  describe('a quiet catalogue', () => {
    it('an old position moves up to a day before the earlier of both clocks, and a recent one stays', async () => {
      const recent = systemClock() - 14n * DAY;
      assert.equal((await get(recent)).next, recent);
      const since = systemClock() - 20n * DAY;
      const before = systemClock();
      const { next } = await get(since);
      assert.ok(before - DAY <= next + SECOND && next <= systemClock() - DAY + SECOND);

      now = systemClock() - 3n * HOUR;
      assert.equal((await get(since)).next, now - DAY - 1n, 'rounded down, so that it does not end in 0');

      now = systemClock() + 9n * DAY;
      assert.ok((await get(since)).next <= systemClock() - DAY + SECOND, "not past the database's clock");
    });

    it('a position moves up from the last entry too, but not while pages follow', async () => {
      const old = systemClock() - 29n * DAY;
      await addTitleAt(service.db, 'old', old);
      const page = await get(old - SECOND);
      assert.deepEqual([page.ids, page.meta.has_more], [['old'], false]);
      now = systemClock() + 5n * DAY;
      assert.deepEqual((await get(page.next)).ids, []);
      now = undefined;
      await pastTriggers(service.db, 'titles', async (transaction) => {
        const titles = Array.from({ length: 200 }, (_, i) => {
          const at = toRfc3339(old + 1n + BigInt(i));
          return { svc_id: `t${i}`, media_type: 'movie', title: 'T', created_at: at, updated_at: at };
        });
        await transaction('titles').insert(titles);
      });
      const full = await get(old - 1n);
      assert.deepEqual([full.ids.length, full.meta.has_more, full.next], [200, true, old + 199n]);
    });

    it('a position does not move while a writer is at work', async () => {
      const since = systemClock() - 20n * DAY;
      for (const table of ['people', 'titles']) {
        const writer = await service.db.transaction();
        if (table === 'titles') await addTitles(writer, 2, 'late');
        else await writer('people').insert({ svc_id: 'p', name: 'P' });
        const held = await get(since);
        assert.deepEqual([held.ids, held.next], [[], since]);
        await writer.commit();
        assert.deepEqual((await get(held.next)).ids, table === 'titles' ? titleIds(2, 'late') : []);
      }
    });

    it('a page misses no entry that is committed during its request', async () => {
      let passed = 0n;
      const quiet = await startService({ now: () => systemClock() + passed });
      const { db } = quiet;
      try {
        const clock = await installClock(db);
        await addTitles(db, 1, 'before');
        const writer = await db.transaction();
        await addTitles(writer, 1, 'during');
        // Old enough to be moved up, past the stamp of the writer.
        passed = 20n * DAY;
        await clock.setOffset(passed);
        // Each call of the safe time's function waits before it reads anything. The function itself is the real one.
        await db.raw(`
          alter function public.catalog_quiet_clock() rename to real_quiet_clock;
          create function public.catalog_quiet_clock() returns timestamptz language plpgsql volatile as $$
          begin
            perform pg_advisory_xact_lock_shared(1, 2);
            return public.real_quiet_clock();
          end
          $$;
        `);
        const gate = await db.transaction();
        await gate.raw('select pg_advisory_xact_lock(1, 2)');
        const page = quiet.get(`/api/v1/changes?since=${toSeconds(await newest(db))}`);
        await untilWaiting('the service waits for the safe time', db);
        await writer.commit();
        await gate.commit();
        const { data, meta } = changesOf(await page);
        const rest = changesOf(await quiet.get(`/api/v1/changes?since=${meta.next_since}`));
        assert.deepEqual(
          [...data, ...rest.data].map(({ svc_id: id }) => id),
          ['during-0001'],
        );
      } finally {
        await quiet.stop();
      }
    });

    it('a feed that is ahead of the clock is followed without loss', async () => {
      // A multiple of 1,000, as the clock's times are.
      const ahead = systemClock() + 2n * HOUR;
      await service.db.raw("select setval('titles_last_stamp', ?)", [String(ahead)]);
      await addTitles(service.db, 250);
      const first = await get(systemClock() - SECOND);
      // No stamp ends in 0.
      assert.deepEqual([first.ids, first.next], [titleIds(200), ahead + 222n]);
      const second = await get(first.next);
      assert.deepEqual([second.ids, second.next], [titleIds(250).slice(200), ahead + 277n]);
      assert.equal((await get(second.next)).next, second.next);
      await service.db('titles').where({ svc_id: 'title-0007' }).update({ title: 'New' });
      assert.deepEqual((await get(second.next)).ids, ['title-0007']);
      // A client whose clock is a little ahead gets what lies after it, rather than an empty page.
      assert.equal((await get(systemClock() + 30n * SECOND)).ids.length, 200);
      assertProblem(await send(ahead + 282n), 'invalid_since', { detail: /more than 60 seconds in the future/ });
    });
  });

  describe('after the feed was restarted', () => {
    const restart = async (): Promise<Micros> => (await restartFeed(service.db)).feedStart;

    it('every position from before is refused, wherever it lies', async () => {
      const begin = systemClock() - SECOND;
      await addTitles(service.db, 250);
      const first = await get(begin);
      const last = await get(first.next);
      const feedStart = await restart();
      const positions = {
        'before the window': begin - WINDOW,
        'old enough to move up': begin - 20n * DAY,
        'before all entries': begin,
        'between two pages': first.next,
        'of the newest entry': last.next,
        'after the newest entry': last.next + 1n,
        now: systemClock(),
        'ahead of the clock': systemClock() + 20n * SECOND,
        'just before the feed start': feedStart - 1n,
      };
      for (const [what, since] of Object.entries(positions)) {
        assert.ok(since < feedStart, what);
        await assertRefused(since, feedStart);
      }
    });

    it('a restart is not hidden behind a 304', async () => {
      await addTitles(service.db, 1);
      const { next } = await get((await newest()) - 1n);
      const { etag = '' } = (await send(next)).headers;
      const conditional = { headers: { authorization: `Bearer ${service.key}`, 'if-none-match': etag } };
      assert.equal((await send(next, conditional)).status, 304);
      const members = { oldest_since: toSeconds(await restart()) };
      assertProblem(await send(next, conditional), 'since_out_of_window', { detail: RESTARTED, members });
    });

    it('the feed start leaves the window as any position does', async () => {
      const feedStart = await restart();
      now = feedStart + WINDOW;
      assert.equal((await send(feedStart)).status, 200);
      await assertRefused(feedStart - 1n, feedStart + MINUTE);
      now = feedStart + WINDOW + 1n;
      await assertRefused(feedStart, feedStart + 1n + MINUTE, TOO_OLD);
      await assertRefused(feedStart - 1n, feedStart + 1n + MINUTE);
      assert.equal((await send(feedStart + 1n)).status, 200);
    });

    it('the feed start is a position also where the clock is behind it', async () => {
      let feedStart = await restart();
      now = feedStart - 10n * SECOND;
      const page = await get(feedStart + 20n * SECOND);
      assert.deepEqual([page.ids, page.next], [[], feedStart]);
      now = undefined;
      const after = feedStart + HOUR;
      feedStart = (await restartFeed(service.db, { after })).feedStart;
      assert.ok(feedStart > after);
      assert.equal((await get(feedStart)).next, feedStart);
      await assertRefused(after, feedStart);
      assertProblem(await send(feedStart + 1n), 'invalid_since');
      await addTitles(service.db, 1);
      const later = await get(feedStart);
      assert.deepEqual([later.ids, later.next > feedStart], [titleIds(1), true]);
    });

    it('no page is answered where the row of the feed start is lost', async () => {
      await addTitles(service.db, 1);
      await service.db('catalog_feed').delete();
      for (const since of [systemClock() - DAY, systemClock() - 20n * DAY, systemClock() + 10n * SECOND]) {
        assertProblem(await send(since), 'internal_error');
      }
    });
  });
});
