import './long.js';
import '../feed-model/mirrors.test.js';
import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { SHORT } from '../feed-model/model/plan.js';
import { runModel } from '../feed-model/model/run.js';
import { Mirror, toMicros, type Violation } from '../feed-model/model/mirror.js';
import { toRfc3339 } from '../../src/platform/time/micros.js';
import { SEED, withSeed } from '../support/catalog/chance.js';
import { startService } from '../support/service.js';

// The tests of chance that `make test` has in a short form, and a control that chance may spare.

/** Chance decides how random writers meet, so a single run may show nothing. */
const MOST_RUNS = 4;

/** Drops the lock that makes writers take turns. */
async function dropLock(db: Knex): Promise<void> {
  await db.raw(`
    drop trigger a_take_writer_lock on public.titles;
    -- Writers now deadlock: later connections detect it soon.
    do $$
    begin
      execute format('alter database %I set deadlock_timeout = 50', current_database());
    end
    $$;
  `);
}

it(withSeed('a run of the length that `make test` has finds a feed without the writers lock'), async () => {
  const found: Violation[] = [];
  const isFound = (): boolean => found.some(({ what }) => what === 'lost');
  for (let run = 0; run < MOST_RUNS && !isFound(); run += 1) {
    const service = await startService();
    try {
      await dropLock(service.db);
      found.push(...(await runModel(service, { seed: SEED + run, size: SHORT })).violations);
    } finally {
      await service.stop();
    }
  }
  assert.ok(isFound(), JSON.stringify(found));
});

const entry = (second: number) => ({
  svc_id: `t${second}`,
  media_type: 'movie' as const,
  title: 'T',
  updated_at: toRfc3339(toMicros(second)),
  has_bundles: false,
});

it('the checks of a mirror find each kind of wrong page', () => {
  for (const [what, seconds, meta, kind] of [
    ['entries that go backwards', [12, 11], {}, 'backwards'],
    ['too many entries', Array.from({ length: 201 }, (_, i) => 11 + i), { next_since: 211 }, 'page'],
    ['more announced by a short page', [11], { has_more: true, next_since: 11 }, 'page'],
    ['an entry at the requested position', [10, 11], {}, 'page'],
    ['a position before the requested one', [], { next_since: 9 }, 'position'],
    ['a position before the last entry', [11, 12], { next_since: 11 }, 'position'],
  ] as const) {
    const mirror = new Mirror('mirror', toMicros(5));
    mirror.page({ data: seconds.map(entry), meta: { has_more: false, next_since: 12, ...meta } }, 10);
    assert.deepEqual([...new Set(mirror.violations.map((one) => one.what))], [kind], what);
  }
});
