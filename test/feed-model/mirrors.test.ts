import assert from 'node:assert/strict';
import fc from 'fast-check';
import { LONG, SEED, withSeed } from '../support/chance.js';
import { installClock } from '../support/postgres/model-clock.js';
import { startReplica } from '../support/postgres/replica.js';
import { testWorld } from '../support/world.js';
import { planWriters, sample, SHORT, type PlanSize } from './model/plan.js';
import type { ProgramFollower } from './model/follower.js';
import { runModel, type Disturbance, type ModelCatalogue, type ModelOptions, type ModelRun } from './model/run.js';

const SIZE: PlanSize = { ...SHORT, transactions: SHORT.transactions * LONG };

const HOUR = 3_600_000_000;

/** Spreads actions evenly over a run, as often as its length allows. */
function spread(actions: readonly Disturbance[1][]): Disturbance[] {
  const all = Array.from({ length: LONG }, () => actions).flat();
  return all.map((act, index) => [(index + 1) / (all.length + 1), act]);
}

describe('mirrors that follow the feed', function () {
  this.timeout(60_000 * LONG);

  /** Runs mirrors and writers, and requires that nothing is wrong and that enough happened. */
  async function run(catalogue: ModelCatalogue, options: Partial<ModelOptions>): Promise<ModelRun> {
    const result = await runModel(catalogue, { seed: SEED, size: SIZE, ...options });
    assert.deepEqual(result.violations, []);
    const { committed, rolledBack, conflicted } = result.tally;
    assert.ok(committed > 20 && rolledBack + conflicted > 0, JSON.stringify(result.tally));
    // Followers that begin later, with a copy, get what the writers happen to change afterwards.
    const fromTheBeginning = Object.entries(result.delivered).filter(([name]) => !name.includes('copy'));
    for (const [name, entries] of fromTheBeginning) assert.ok(entries > 500, `${name}: ${entries}`);
    return result;
  }

  describe('of a PostgreSQL that dies', () => {
    const world = testWorld({ ownServer: true, each: true });

    it(
      withSeed('have exactly the catalogue although servers, followers, writers and PostgreSQL are killed'),
      async () => {
        const { db, url: databaseUrl, postgres } = world;
        const { key } = await world.newKey();
        let server = await world.startServer();
        const { url } = server;
        const killServer = async (): Promise<void> => {
          await server.stop('SIGKILL');
          server = await world.startServer({ PORT: new URL(url).port });
        };
        const restartPostgres = async (): Promise<void> => {
          await postgres.stop('immediate');
          await postgres.restart();
        };
        const killFollower = async (program?: ProgramFollower): Promise<void> => program?.kill();
        const { tally } = await run(
          { url, key, databaseUrl, db },
          {
            size: { ...SIZE, transactions: 12 * LONG, longestHoldMs: 200, cuts: true },
            hasProgram: true,
            disturbances: spread([killServer, killFollower, restartPostgres]),
          },
        );
        assert.ok(tally.lost > 0);
      },
    );

    it(withSeed('have exactly the catalogue although the replica that they read lags, dies and returns'), async () => {
      const replica = await startReplica(world.postgres);
      world.defer(() => replica.kill());
      await run(await world.startService({ settings: { DATABASE_READ_URL: replica.url } }), {
        disturbances: spread([
          () => replica.pauseReplay(),
          () => replica.resumeReplay(),
          () => replica.kill(),
          () => replica.restart(),
        ]),
        settle: () => replica.caughtUp(),
      });
    });
  });

  describe('of a database whose clock is wrong', () => {
    const world = testWorld({ service: true, each: true });

    for (const [what, precision, steps] of [
      ['steps back and forth by hours', 'microseconds', fc.integer({ min: -HOUR, max: HOUR })],
      ['ticks in seconds and steps back by one', 'second', fc.constantFrom(0, 0, -1_000_000)],
    ] as const) {
      // Stamps come from the database's clock alone. The clock of the service stays right.
      it(withSeed(`have exactly the catalogue although the clock of the database ${what}`), async () => {
        const clock = await installClock(world.db, precision);
        const offsets = sample(SEED, fc.array(steps, { minLength: 200, maxLength: 200 }));
        let transactions = 0;
        await run(world.service, {
          before: () => clock.setOffset(BigInt(offsets[transactions++ % offsets.length] ?? 0)),
        });
      });
    }
  });
});

describe('the plan of writers', () => {
  it('is the same for the same seed', () => {
    assert.deepEqual(planWriters(7, SIZE), planWriters(7, SIZE));
    assert.notDeepEqual(planWriters(7, SIZE), planWriters(8, SIZE));
  });
});
