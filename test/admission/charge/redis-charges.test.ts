import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import type { QuotaRequest } from '../../../src/admission/charge/limiter.js';
import { readQuotaCounters, RedisCharges, type Charge } from '../../../src/admission/charge/redis-charges.js';
import { EPOCH_KEY } from '../../../src/admission/epoch.js';
import { RedisLink } from '../../../src/platform/redis/link.js';
import { startRedis, type TestRedis } from '../../support/redis.js';

/** The most requests that one command charges. */
const BATCH = 16;

function requestOf(developerId: number, requestsPerMinute: number, requestsPerDay: number, id = 'test'): QuotaRequest {
  return { developerId, plan: { id, name: 'Test', requestsPerMinute, requestsPerDay, commercialUse: false } };
}

/** What was done with a request, and the count of the minute and of the day. */
function inShort(charge: Charge): string {
  return charge.kind === 'precondition_failed'
    ? charge.kind
    : [charge.kind, ...charge.counts.map((count) => count?.requests)].join(' ');
}

describe('requests that are charged together', () => {
  let redis: TestRedis;
  let link: RedisLink;
  let charges: RedisCharges;
  let commands: () => Promise<number>;

  before(async () => {
    redis = await startRedis();
    link = new RedisLink(redis.address, () => undefined);
    await link.settled();
    charges = new RedisCharges(link);
    commands = async () => Number(/cmdstat_evalsha:calls=(\d+)/.exec(await link.client.info('commandstats'))?.[1] ?? 0);
    // The script is known from here on.
    await charges.charge(requestOf(0, 1, 1));
    await link.run((client) => client.set(EPOCH_KEY, 'now'));
  });

  after(async () => {
    link.close();
    await redis.stop();
  });

  function chargeAll(by: RedisCharges, requests: readonly QuotaRequest[]): Promise<string[]> {
    return Promise.all(requests.map(async (request) => inShort(await by.charge(request))));
  }

  it('share one command, in the order of their arrival, as far as the smaller quota goes', async () => {
    const before = await commands();
    const request = requestOf(1, 3, 10);
    assert.deepEqual(await chargeAll(charges, Array<QuotaRequest>(5).fill(request)), [
      'charged 1 1',
      'charged 2 2',
      'charged 3 3',
      'refused 3 3',
      'refused 3 3',
    ]);
    assert.equal(await commands(), before + 1);
    assert.equal((await readQuotaCounters(link, 1, request.plan)).day?.requests, 3);
  });

  it('share a few commands when they are many', async () => {
    const before = await commands();
    const requests = Array.from({ length: 3 * BATCH }, (_, i) => requestOf(100 + i, 1, 1));
    assert.deepEqual(new Set(await chargeAll(charges, requests)), new Set(['charged 1 1']));
    assert.equal(await commands(), before + 3);
  });

  it('fail together when Redis fails', async () => {
    const lost = new RedisLink(redis.address, () => undefined);
    const outcomes = await Promise.allSettled([1, 2].map((id) => new RedisCharges(lost).charge(requestOf(id, 1, 1))));
    lost.close();
    assert.deepEqual(
      outcomes.map((outcome) => outcome.status === 'rejected' && String(outcome.reason)),
      Array(2).fill('RedisUnavailable: Redis is lost'),
    );
  });

  it('are decided as with a command for each', async () => {
    let developers = 1_000;
    const request = fc.record({
      developer: fc.nat(2),
      perMinute: fc.integer({ min: 1, max: 4 }),
      perDay: fc.integer({ min: 1, max: 4 }),
      plan: fc.constantFrom('one', 'two'),
      epoch: fc.constantFrom('now', 'then', undefined),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(request, { maxLength: 20 }), async (requests) => {
        const decide = (by: RedisCharges, firstDeveloper: number): Promise<string[]> =>
          Promise.all(
            requests.map(async ({ developer, perMinute, perDay, plan, epoch }) => {
              const charged = requestOf(firstDeveloper + developer, perMinute, perDay, plan);
              return inShort(await by.charge(charged, epoch));
            }),
          );
        developers += 6;
        assert.deepEqual(await decide(charges, developers), await decide(new RedisCharges(link, 1), developers + 3));
      }),
      { numRuns: 100 },
    );
  });

  it('are charged exactly as far as the quota goes, in whatever order commands of several servers come and are answered', async () => {
    let developers = 10_000;
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler({ act: (step) => step().then(() => setImmediate()) }),
        fc.array(fc.record({ server: fc.nat(2), developer: fc.nat(1) }), { minLength: 4, maxLength: 16 }),
        async (scheduler, requests) => {
          const pass = (): Promise<void> => scheduler.schedule(Promise.resolve());
          const servers = [0, 1, 2].map(() => {
            const run = async (command: Parameters<typeof link.run>[0]): Promise<unknown> => {
              await pass();
              const answer = await link.run(command);
              await pass();
              return answer;
            };
            return new RedisCharges({ client: link.client, run } as unknown as RedisLink);
          });
          developers += 2;
          const limits = [3, 5];
          const outcomes: string[][] = [[], []];
          await scheduler.waitFor(
            Promise.all(
              requests.map(async ({ server, developer }) => {
                await pass();
                const limit = limits[developer] ?? 0;
                const charge = await servers[server]?.charge(requestOf(developers + developer, limit, 100), 'now');
                outcomes[developer]?.push(inShort(charge ?? assert.fail()));
              }),
            ),
          );
          for (const [developer, limit] of limits.entries()) {
            const asked = requests.filter((request) => request.developer === developer).length;
            assert.deepEqual(
              outcomes[developer]?.toSorted(),
              Array.from({ length: asked }, (_, i) =>
                i < limit ? `charged ${i + 1} ${i + 1}` : `refused ${limit} ${limit}`,
              ),
            );
          }
        },
      ),
      { numRuns: 100 },
    );
  });
});
