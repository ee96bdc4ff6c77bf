import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { fromRfc3339 } from '../../src/platform/time/micros.js';
import { createClient, type ChangesPage } from '../../src/follower/client.js';
import { startService, type TestService } from '../support/service.js';
import { addTitles, titleIds } from '../support/titles.js';
import { installClock } from '../support/postgres/model-clock.js';
import { Mirror, toMicros } from './model/mirror.js';
import { planWriters } from './model/plan.js';
import { SEED, withSeed } from './model/random.js';
import { runWriter, type Tally } from './model/writer.js';

const SECOND = 1_000_000n;

describe('a follower that cuts next_since to whole seconds', () => {
  let service: TestService;

  beforeEach(async () => {
    service = await startService();
  });

  afterEach(() => service.stop());

  async function ask(since: number): Promise<ChangesPage> {
    const reading = await createClient({ baseUrl: service.url, key: service.key })(since, new AbortController().signal);
    return reading.kind === 'page' ? reading.page : assert.fail(reading.reason);
  }

  it(withSeed('repeats entries and loses none, where no second has more than a page'), async () => {
    const clock = await installClock(service.db);
    // An hour ago, and a fifth of a second later with each transaction, so that seconds pass faster than they do.
    await clock.setOffset(-3600n * SECOND);
    // In an empty catalogue, with writers at work, a position could rest on nothing.
    await addTitles(service.db, 1);
    let since = Math.floor(Date.now() / 1000) - 3700;
    const mirror = new Mirror('truncating', toMicros(since));
    const tally: Tally = { committed: 0, rolledBack: 0, conflicted: 0, lost: 0 };
    let repeated = 0;
    const writing = Promise.all(
      planWriters(SEED, { writers: 8, transactions: 20, longestHoldMs: 50, bulkRows: 0, cuts: false }).map(
        (transactions, index) =>
          runWriter({
            name: `w${index}`,
            databaseUrl: service.databaseUrl,
            transactions,
            tally,
            before: () => clock.advance(SECOND / 5n),
          }),
      ),
    ).then(() => true);
    for (let written = false; ;) {
      // In this order: what is asked for after the last write must be complete.
      written ||= await Promise.race([writing, delay(5, false)]);
      for (;;) {
        const page = await ask(since);
        const seen = mirror.entries;
        // Only what has been cut off may come again.
        mirror.resume(toMicros(since));
        mirror.page(page, since);
        repeated += mirror.entries - seen;
        const next = Math.floor(page.meta.next_since);
        assert.ok(next >= since, 'steps back');
        const stands = next === since;
        since = next;
        if (!page.meta.has_more) break;
        assert.ok(!stands, 'a second has more than a page: the plan is wrong');
      }
      if (written) break;
    }
    await mirror.compare(service.db);
    assert.deepEqual(mirror.violations, []);
    assert.ok(repeated > tally.committed, 'nothing came again');
  });

  it('gets no further where a second has more, but passes nothing by', async () => {
    const clock = await installClock(service.db, 'second');
    await clock.setOffset(-60n * SECOND);
    await addTitles(service.db, 201);
    const second = Number(
      fromRfc3339(((await service.db('titles').min('updated_at as first').first()) as { first: string }).first) /
        SECOND,
    );
    let since = second - 1;
    const pages: string[][] = [];
    for (let visit = 0; visit < 3; visit += 1) {
      const page = await ask(since);
      pages.push(page.data.map(({ svc_id: id }) => id));
      since = Math.floor(page.meta.next_since);
    }
    const all = titleIds(201);
    assert.deepEqual(pages, [all.slice(0, 200), all.slice(0, 200), all.slice(0, 200)]);
  });
});
