import assert from 'node:assert/strict';
import { restartFeed } from '../../../src/catalog/restart.js';
import { systemClock, toSeconds, type Micros } from '../../../src/platform/time/micros.js';
import type { Answer } from '../../../src/contract.js';
import { assertProblem } from '../../support/problem.js';
import type { Reply, RequestOptions } from '../../support/request.js';
import { startService, type TestService } from '../../support/service.js';
import { addTitles, changesOf, titleIds } from '../../support/titles.js';

const SECOND: Micros = 1_000_000n;
const DAY = 86_400n * SECOND;
const WINDOW = 30n * DAY;

describe('GET /api/v1/changes after the feed was restarted', () => {
  let service: TestService;
  /** The service's clock, where a test sets it. */
  let now: Micros | undefined;

  beforeEach(async () => {
    now = undefined;
    service = await startService({ now: () => now ?? systemClock() });
  });

  afterEach(() => service.stop());

  function send(since: Micros, options?: RequestOptions): Promise<Reply> {
    const seconds = `${since / SECOND}.${String(since % SECOND).padStart(6, '0')}`;
    return service.get(`/api/v1/changes?since=${seconds}`, options);
  }

  async function ask(since: Micros): Promise<{ ids: string[]; next: Micros; meta: Answer<'getChanges'>['meta'] }> {
    const { data, meta } = changesOf(await send(since));
    return { ids: data.map(({ svc_id: id }) => id), next: BigInt(Math.round(meta.next_since * 1e6)), meta };
  }

  async function restart(): Promise<Micros> {
    return (await restartFeed(service.db)).start;
  }

  async function assertRefused(since: Micros, oldest: Micros): Promise<void> {
    assertProblem(await send(since), 'since_out_of_window', {
      detail:
        'since lies before the time at which the catalogue was restored: earlier responses of the feed are no longer valid. Get a copy of the catalogue made after that time and follow from the position that comes with it. Without a position, follow from an hour before the copy was begun, or from oldest_since if that is later.',
      members: { oldest_since: toSeconds(oldest) },
    });
  }

  it('refuses every position from before, wherever it lies', async () => {
    const start = systemClock() - SECOND;
    await addTitles(service.db, 450);
    const first = await ask(start);
    const last = await ask((await ask(first.next)).next);
    const beginning = await restart();
    const positions = {
      'before the window': start - WINDOW,
      'so old that it would be moved up': start - 20n * DAY,
      'before all entries': start,
      'between two pages': first.next,
      'of the newest entry': last.next,
      'after the newest entry': last.next + 1n,
      now: systemClock(),
      'ahead of the clock': systemClock() + 20n * SECOND,
      'just before the beginning': beginning - 1n,
    };
    for (const [what, since] of Object.entries(positions)) {
      assert.ok(since < beginning, what);
      await assertRefused(since, beginning);
    }
  });

  it('gives all that is written later, and nothing else, from the beginning on', async () => {
    await addTitles(service.db, 2, 'before');
    const beginning = await restart();
    assert.deepEqual(await ask(beginning), {
      ids: [],
      next: beginning,
      meta: { has_more: false, next_since: toSeconds(beginning) },
    });
    await addTitles(service.db, 201, 'after');
    await service.db('titles').where({ svc_id: 'before-0001' }).update({ title: 'New' });
    const page = await ask(beginning);
    assert.deepEqual([page.ids, page.meta.has_more], [titleIds(200, 'after'), true]);
    assert.deepEqual((await ask(page.next)).ids, ['after-0201', 'before-0001']);
  });

  it('takes the position of a client that cuts the decimals off', async () => {
    const beginning = await restart();
    assert.equal(beginning % SECOND, 0n);
    await addTitles(service.db, 2);
    const { next } = await ask(beginning);
    assert.deepEqual((await ask((next / SECOND) * SECOND)).ids, titleIds(2));
  });

  it('does not hide the restart behind a 304', async () => {
    await addTitles(service.db, 1);
    const { next } = await ask(systemClock() - 10n * SECOND);
    const { etag } = (await send(next)).headers;
    const conditional = (tag: string | undefined): RequestOptions => ({
      headers: { authorization: `Bearer ${service.key}`, 'if-none-match': tag ?? assert.fail('no ETag') },
    });
    for (const tag of [etag, '*']) assert.equal((await send(next, conditional(tag))).status, 304);
    const beginning = await restart();
    for (const tag of [etag, '*']) {
      assertProblem(await send(next, conditional(tag)), 'since_out_of_window', {
        members: { oldest_since: toSeconds(beginning) },
      });
    }
  });

  it('sends a client whose clock runs ahead to the beginning, so that it loses nothing', async () => {
    await addTitles(service.db, 1, 'before');
    const beginning = await restart();
    now = beginning - 10n * SECOND;
    const page = await ask(beginning + 20n * SECOND);
    assert.deepEqual([page.ids, page.next], [[], beginning]);
    await addTitles(service.db, 1, 'after');
    assert.deepEqual((await ask(page.next)).ids, ['after-0001']);
  });

  it('takes the beginning as a position also where the clock is far behind it', async () => {
    const after = systemClock() + 3_600n * SECOND;
    const { start: feedStart } = await restartFeed(service.db, { after });
    assert.ok(feedStart > after);
    assert.deepEqual((await ask(feedStart)).next, feedStart);
    await assertRefused(after, feedStart);
    assertProblem(await send(feedStart + 1n), 'invalid_since');
    await addTitles(service.db, 1);
    const page = await ask(feedStart);
    assert.deepEqual([page.ids, page.next > feedStart], [titleIds(1), true]);
    assert.deepEqual(await ask(page.next), { ids: [], next: page.next, meta: { ...page.meta, has_more: false } });
  });

  // The window moves until a client sends the position that a refusal offers.
  const MINUTE = 60n * SECOND;

  it('lets the beginning leave the window as any position does', async () => {
    const beginning = await restart();
    now = beginning + WINDOW;
    assert.equal((await send(beginning)).status, 200);
    await assertRefused(beginning - 1n, beginning + MINUTE);
    now = beginning + WINDOW + 1n;
    assertProblem(await send(beginning), 'since_out_of_window', {
      detail: /^since is more than 30 days in the past/,
      members: { oldest_since: toSeconds(beginning + 1n + MINUTE) },
    });
    await assertRefused(beginning - 1n, beginning + 1n + MINUTE);
    assert.equal((await send(beginning + 1n)).status, 200);
  });

  it('answers 500, and no page, where the row of the beginning is lost', async () => {
    await addTitles(service.db, 1);
    await service.db('catalog_feed').delete();
    for (const since of [systemClock() - DAY, systemClock() - 20n * DAY, systemClock() + 10n * SECOND]) {
      assertProblem(await send(since), 'internal_error');
    }
    const beginning = await restart();
    assert.equal((await send(beginning)).status, 200);
  });
});
