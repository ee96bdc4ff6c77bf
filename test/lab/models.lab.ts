import './long.js';
import '../feed-model/mirrors.test.js';
import assert from 'node:assert/strict';
import { dropLock } from '../feed-model/model/alterations.js';
import { SHORT } from '../feed-model/model/plan.js';
import { runModel } from '../feed-model/model/run.js';
import type { Violation } from '../feed-model/model/mirror.js';
import { SEED, withSeed } from '../support/chance.js';
import { startService } from '../support/service.js';

// The tests of chance that `make test` has in a short form, and a control that chance may spare.

/** Chance decides how random writers meet, so a single run may show nothing. */
const MOST_RUNS = 4;

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
