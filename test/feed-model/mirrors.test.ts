import assert from 'node:assert/strict';
import fc from 'fast-check';
import { installClock } from '../support/postgres/model-clock.js';
import { startReplica } from '../support/postgres/replica.js';
import type { ServerProcess } from '../support/program.js';
import { testWorld } from '../support/world.js';
import { planWriters, sample, SEED, withSeed, type PlanSize } from './model/plan.js';
import { runModel, type ModelOptions, type ModelRun } from './model/run.js';

const SIZE: PlanSize = { writers: 8, transactions: 15, longestHoldMs: 200, bulkRows: 1_500, cuts: false };

const HOUR = 3_600_000_000;

describe('mirrors that follow the feed', () => {
  const world = testWorld({ ownServer: true, each: true });
  let server: ServerProcess;

  async function run(options: Partial<ModelOptions> = {}, settings: Record<string, string> = {}): Promise<ModelRun> {
    const { key } = await world.newKey();
    server = await world.startServer(settings);
    const { db, url: databaseUrl } = world;
    const result = await runModel({ url: server.url, key, databaseUrl, db }, { seed: SEED, size: SIZE, ...options });
    assert.deepEqual(result.violations, []);
    assert.ok(result.tally.committed > 60 && result.tally.rolledBack > 0, JSON.stringify(result.tally));
    // Followers that begin later, with a copy, get what the writers happen to change afterwards.
    const fromTheBeginning = Object.entries(result.delivered).filter(([name]) => !name.includes('copy'));
    for (const [name, entries] of fromTheBeginning) assert.ok(entries > 500, `${name}: ${entries}`);
    return result;
  }

  it(
    withSeed('have exactly the catalogue although servers, followers, writers and PostgreSQL are killed'),
    async () => {
      const killServer = async (): Promise<void> => {
        await server.stop('SIGKILL');
        server = await world.startServer({ PORT: new URL(server.url).port });
      };
      const restartPostgres = async (): Promise<void> => {
        await world.postgres.stop('immediate');
        await world.postgres.restart();
      };
      const { tally } = await run({
        size: { ...SIZE, transactions: 24, longestHoldMs: 300, cuts: true },
        disturbances: [
          [0.1, killServer],
          [0.2, (program) => program.kill()],
          [0.4, restartPostgres],
          [0.55, killServer],
          [0.7, restartPostgres],
          [0.8, (program) => program.kill()],
        ],
      });
      assert.ok(tally.lost > 0);
    },
  );

  it(withSeed('have exactly the catalogue although the replica that they read lags, dies and returns'), async () => {
    const replica = await startReplica(world.postgres);
    world.defer(() => replica.kill());
    await run(
      {
        disturbances: [
          [0.15, () => replica.pauseReplay()],
          [0.35, () => replica.resumeReplay()],
          [0.5, () => replica.kill()],
          [0.7, () => replica.restart()],
        ],
        settle: () => replica.caughtUp(),
      },
      { DATABASE_READ_URL: replica.url },
    );
  });

  for (const [what, precision, steps] of [
    ['steps back and forth by hours', 'microseconds', fc.integer({ min: -HOUR, max: HOUR })],
    ['ticks in seconds and steps back by one', 'second', fc.constantFrom(0, 0, -1_000_000)],
  ] as const) {
    // Stamps come from the database's clock alone. The clock of the service stays right.
    it(withSeed(`have exactly the catalogue although the clock of the database ${what}`), async () => {
      const clock = await installClock(world.db, precision);
      const offsets = sample(SEED, fc.array(steps, { minLength: 200, maxLength: 200 }));
      let transactions = 0;
      await run({ before: () => clock.setOffset(BigInt(offsets[transactions++ % offsets.length] ?? 0)) });
    });
  }
});

describe('the plan of writers', () => {
  it('is the same for the same seed', () => {
    assert.deepEqual(planWriters(7, SIZE), planWriters(7, SIZE));
    assert.notDeepEqual(planWriters(7, SIZE), planWriters(8, SIZE));
  });
});
