import assert from 'node:assert/strict';
import { startPostgres, type TestPostgres } from '../support/postgres.js';
import { planWriters, type PlanSize } from './model/plan.js';
import { SEED, withSeed } from './model/random.js';
import { runModel } from './model/run.js';
import { createWorld, type World } from './model/world.js';

const SIZE: PlanSize = { writers: 8, transactions: 24, longestHoldMs: 300, bulkRows: 2_500, cuts: false };

describe('mirrors that follow the feed end up with exactly the catalogue', () => {
  it('by a plan that a seed repeats', () => {
    assert.deepEqual(planWriters(7, SIZE), planWriters(7, SIZE));
    assert.notDeepEqual(planWriters(7, SIZE), planWriters(8, SIZE));
  });

  describe('while writers do what they like', () => {
    let world: World;

    before(async () => {
      world = await createWorld();
    });

    after(() => world.close());

    it(withSeed('insert, update, upsert, write in bulk, import, hold, roll back'), async () => {
      const { violations, tally, delivered } = await runModel(world, {
        seed: SEED,
        size: SIZE,
      });
      assert.deepEqual(violations, []);
      assert.ok(tally.committed > 100 && tally.rolledBack > 0, JSON.stringify(tally));
      assert.equal(tally.lost, 0);
      for (const [name, entries] of Object.entries(delivered)) assert.ok(entries > 1_000, name);
    });
  });

  describe('while everything fails', () => {
    let postgres: TestPostgres;
    let world: World;

    before(async () => {
      postgres = await startPostgres();
      world = await createWorld(postgres.url);
    });

    after(async () => {
      await world.close();
      await postgres.stop('immediate');
    });

    it(withSeed('servers and followers are killed, connections are cut, PostgreSQL restarts'), async () => {
      const restart = async (): Promise<void> => {
        await postgres.stop('immediate');
        await postgres.restart();
      };
      const { violations, tally, delivered } = await runModel(world, {
        seed: SEED,
        size: { ...SIZE, cuts: true },
        disturbances: [
          { at: 0.1, happens: () => world.killServer() },
          { at: 0.2, happens: ({ program }) => program.kill() },
          { at: 0.4, happens: restart },
          { at: 0.55, happens: () => world.killServer() },
          { at: 0.7, happens: restart },
          { at: 0.8, happens: ({ program }) => program.kill() },
        ],
      });
      assert.deepEqual(violations, []);
      assert.ok(tally.committed > 100 && tally.rolledBack > 0 && tally.lost > 0, JSON.stringify(tally));
      for (const [name, entries] of Object.entries(delivered)) assert.ok(entries > 1_000, name);
    });
  });
});
