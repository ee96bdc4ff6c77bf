import assert from 'node:assert/strict';
import { startPostgres, type TestPostgres } from '../support/postgres.js';
import { startReplica, type TestReplica } from '../support/postgres/replica.js';
import { SEED, withSeed } from './model/random.js';
import { runModel } from './model/run.js';
import { createWorld, type World } from './model/world.js';

describe('mirrors that follow the feed through a replica', () => {
  let postgres: TestPostgres;
  let replica: TestReplica;
  let world: World;

  before(async () => {
    postgres = await startPostgres();
    replica = await startReplica(postgres);
    world = await createWorld(postgres.url, { DATABASE_READ_URL: replica.url });
  });

  after(async () => {
    await world.close();
    await replica.kill();
    await postgres.stop('immediate');
  });

  it(withSeed('end up with exactly the catalogue, while it lags, dies and comes back'), async () => {
    const { violations, delivered } = await runModel(world, {
      seed: SEED,
      size: { writers: 8, transactions: 15, longestHoldMs: 200, bulkRows: 1_500, cuts: false },
      disturbances: [
        { at: 0.15, happens: () => replica.pauseReplay() },
        { at: 0.35, happens: () => replica.resumeReplay() },
        { at: 0.5, happens: () => replica.kill() },
        { at: 0.7, happens: () => replica.restart() },
      ],
      settle: () => replica.caughtUp(),
    });
    assert.deepEqual(violations, []);
    for (const [name, entries] of Object.entries(delivered)) assert.ok(entries > 500, name);
  });
});
