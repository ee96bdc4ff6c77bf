import './long.js';
import '../feed-model/mirrors.test.js';
import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { SHORT } from '../feed-model/model/plan.js';
import { runModel } from '../feed-model/model/run.js';
import type { Violation } from '../feed-model/model/mirror.js';
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
