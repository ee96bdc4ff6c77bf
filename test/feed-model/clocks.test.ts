import assert from 'node:assert/strict';
import { startService, type TestService } from '../support/service.js';
import { installClock } from '../support/postgres/model-clock.js';
import { Random, SEED, withSeed } from './model/random.js';
import { runModel } from './model/run.js';

const HOUR = 3_600_000_000;

// Stamps come from the database's clock alone. Here the test sets that clock (see installClock), also in the middle of
// transactions and of statements. The clock of the service stays right, so stamps lie before and after its time.
describe('mirrors lose nothing while the clock of the database', () => {
  let service: TestService;

  beforeEach(async () => {
    service = await startService();
  });

  afterEach(() => service.stop());

  const size = { writers: 8, transactions: 10, longestHoldMs: 100, bulkRows: 1_000, cuts: false };

  it(withSeed('steps back and forth by hours'), async () => {
    const clock = await installClock(service.db);
    const random = new Random(SEED).part(-1);
    const { violations } = await runModel(service, {
      seed: SEED,
      size,
      before: () => clock.setOffset(BigInt(random.between(-HOUR, HOUR))),
    });
    assert.deepEqual(violations, []);
  });

  it(withSeed('ticks in seconds, and now and then steps back by one'), async () => {
    const clock = await installClock(service.db, 'second');
    const random = new Random(SEED).part(-2);
    const { violations } = await runModel(service, {
      seed: SEED,
      size,
      before: () => clock.setOffset(random.chance(0.3) ? -1_000_000n : 0n),
    });
    assert.deepEqual(violations, []);
  });
});
