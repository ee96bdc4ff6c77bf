import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Knex } from 'knex';
import { repairCounts } from '../../src/catalog/counts.js';
import { restartFeed } from '../../src/catalog/restart.js';
import { LONG, sample, SEED, withSeed } from '../support/catalog/chance.js';
import { installClock } from '../support/postgres/model-clock.js';
import { pastTriggers } from '../support/postgres/past-triggers.js';
import { startReplica } from '../support/postgres/replica.js';
import { testWorld, type World } from '../support/world.js';
import { startCopyHost } from '../client/mirror/publishing.js';
import { SHORT, type PlanSize } from './model/plan.js';
import { runModel, type Disturbance, type ModelCatalogue, type ModelOptions, type ModelRun } from './model/run.js';

const SIZE: PlanSize = { ...SHORT, transactions: SHORT.transactions * LONG };

const HOUR = 3_600_000_000;

/** What goes wrong, and what it goes wrong with. Opens what it needs. */
type Fault = (world: World) => Promise<readonly [ModelCatalogue, Partial<ModelOptions>]>;

/** As often as the length of a run allows. */
function often(...actions: readonly Disturbance[]): Disturbance[] {
  return Array.from({ length: LONG }, () => actions).flat();
}

/** Servers, a mirror, PostgreSQL and the replica that servers read are killed, and writers lose their connections. */
const kills: Fault = async (world) => {
  const { db, url: databaseUrl, postgres } = world;
  const { key } = await world.newKey();
  const replica = await startReplica(postgres);
  world.defer(() => replica.kill());
  const settings = { DATABASE_READ_URL: replica.url };
  let server = await world.startServer(settings);
  const { url } = server;
  return [
    { url, key, databaseUrl, db },
    {
      size: { ...SIZE, transactions: 12 * LONG, longestHoldMs: 200, cuts: true },
      copiesUrl: `${url}/copies`,
      disturbances: often(
        () => replica.pauseReplay(),
        async (mirror) => mirror?.kill(),
        // While it starts.
        async (mirror) => mirror?.kill(),
        async () => {
          await server.stop('SIGKILL');
          server = await world.startServer({ ...settings, PORT: new URL(url).port });
        },
        () => replica.resumeReplay(),
        async (mirror) => mirror?.kill(),
        async (mirror) => mirror?.check(),
        () => replica.kill(),
        async () => {
          await postgres.stop('immediate');
          await postgres.restart();
        },
        () => replica.restart(),
      ),
      settle: () => replica.caughtUp(),
    },
  ];
};

/** The clock of the database is wrong. That of the service stays right, and stamps come from the database's alone. */
function wrongClock(precision: 'microseconds' | 'second', steps: fc.Arbitrary<number>): Fault {
  return async ({ db, service }) => {
    const clock = await installClock(db, precision);
    const offsets = sample(SEED, fc.array(steps, { minLength: 200, maxLength: 200 }));
    let transactions = 0;
    return [service, { before: () => clock.setOffset(BigInt(offsets[transactions++ % offsets.length] ?? 0)) }];
  };
}

/** Again and again, the database is as from a backup: titles are missing, or have their first content and stamp. */
function lostCommits(restart: (db: Knex) => Promise<unknown>): Fault {
  return async (world) => {
    const { db, service } = world;
    const host = await startCopyHost();
    world.defer(() => host.stop());
    const lose = async (): Promise<void> => {
      await pastTriggers(db, 'titles', async (transaction) => {
        await transaction.raw('delete from titles where hashtext(svc_id) % 5 = 0');
        await transaction.raw(
          "update titles set title = 'As at first', updated_at = created_at where hashtext(svc_id) % 5 = 1",
        );
      });
      await repairCounts(db);
      await restart(db);
      await host.publish(service);
    };
    return [service, { copiesUrl: host.url, disturbances: often(lose, async (mirror) => mirror?.kill(), lose) }];
  };
}

async function run(world: World, fault: Fault): Promise<ModelRun> {
  const [catalogue, options] = await fault(world);
  return runModel(catalogue, { seed: SEED, size: SIZE, ...options });
}

/** Requires that nothing is wrong, and that enough happened. */
function assertRight({ violations, tally, delivered }: ModelRun): void {
  assert.deepEqual(violations, []);
  assert.ok(tally.committed > 20 && tally.rolledBack > 0, JSON.stringify(tally));
  // Followers that begin later, with a copy, get what the writers happen to change afterwards.
  const fromTheBeginning = Object.entries(delivered).filter(([name]) => !name.includes('copy'));
  for (const [name, entries] of fromTheBeginning) assert.ok(entries > 500, `${name}: ${entries}`);
}

describe('mirrors that follow the feed', function () {
  this.timeout(this.timeout() * LONG);

  describe('of a PostgreSQL that dies', () => {
    const world = testWorld({ ownServer: true });

    it(withSeed('mirrors have exactly the catalogue although everything is killed and a replica lags'), async () => {
      const result = await run(world, kills);
      assertRight(result);
      assert.ok(result.tally.lost > 0);
    });
  });

  describe('of a PostgreSQL that stays', () => {
    const world = testWorld({ service: true, each: true });

    for (const [what, fault] of Object.entries({
      'steps back and forth by hours': wrongClock('microseconds', fc.integer({ min: -HOUR, max: HOUR })),
      'ticks in seconds and steps back by one': wrongClock('second', fc.constantFrom(0, 0, -1_000_000)),
    })) {
      it(withSeed(`mirrors have exactly the catalogue although the clock of the database ${what}`), async () => {
        const result = await run(world, fault);
        assertRight(result);
        assert.ok(result.copies.every((copies) => copies === 0));
      });
    }

    it(
      withSeed('mirrors are refused after each restart of the feed and end up with exactly the catalogue'),
      async () => {
        const { violations, copies } = await run(world, lostCommits(restartFeed));
        assert.deepEqual(violations, []);
        // One that begins after the last restart is not refused.
        for (const times of copies.slice(0, 3)) assert.ok(times > 0 && times <= 2 * LONG, String(copies));
      },
    );

    it(withSeed('mirrors keep entries that the database has lost if the feed is not restarted'), async () => {
      const [catalogue, { disturbances = [] }] = await lostCommits(() => Promise.resolve())(world);
      // Without `catalog mirror`, which would not end equal either.
      const { violations, copies } = await runModel(catalogue, { seed: SEED, size: SIZE, disturbances });
      assert.ok(copies.every((times) => times === 0));
      assert.ok(violations.some(({ what }) => what === 'foreign'));
    });
  });
});
