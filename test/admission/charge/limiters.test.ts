import assert from 'node:assert/strict';
import type { Decision, Limiter, QuotaRequest } from '../../../src/admission/charge/limiter.js';
import { MemoryLimiter } from '../../../src/admission/charge/memory.js';
import { RedisLimiter } from '../../../src/admission/charge/redis.js';
import { RedisLink } from '../../../src/platform/redis/link.js';
import { startRedis } from '../../support/redis/redis.js';
import { inShort, newDeveloper, requestOf } from './requests.js';

/** Opens a limiter. @returns also what closes it */
type Open = () => Promise<{ readonly limiter: Limiter; readonly close: () => Promise<void> }>;

const openMemory: Open = async () => ({ limiter: new MemoryLimiter(), close: async () => undefined });

const openRedis: Open = async () => {
  const redis = await startRedis();
  const link = new RedisLink(redis.address, () => undefined);
  await link.settled();
  const close = async (): Promise<void> => {
    link.close();
    await redis.stop();
  };
  return { limiter: new RedisLimiter(link), close };
};

for (const [countedIn, open] of [
  ['process', openMemory],
  ['redis', openRedis],
] as const) {
  describe(`a limiter that counts in ${countedIn}`, () => {
    let limiter: Limiter;
    let close: () => Promise<void>;

    before(async () => ({ limiter, close } = await open()));
    after(() => close());

    const chargeAll = (requests: readonly QuotaRequest[]): Promise<Decision[]> =>
      Promise.all(requests.map((request) => limiter.charge(request)));

    const charge = async (request: QuotaRequest): Promise<string> => inShort(await limiter.charge(request));

    it(`the state of each quota is reported, counted in ${countedIn}`, async () => {
      const { quotas } = await limiter.charge(requestOf(newDeveloper(), 60, 10_000));
      assert.deepEqual(quotas, [
        { name: 'minute', limit: 60, windowSeconds: 60, remaining: 59, resetSeconds: 60 },
        { name: 'day', limit: 10_000, windowSeconds: 86_400, remaining: 9_999, resetSeconds: 86_400 },
      ]);
    });

    for (const [quota, perMinute, perDay] of [
      ['minute', 100, 500],
      ['day', 500, 100],
    ] as const) {
      it(`exactly 100 of 1,000 concurrent requests of a plan of 100 a ${quota} are charged, counted in ${countedIn}`, async () => {
        const request = requestOf(newDeveloper(), perMinute, perDay);
        const decisions = await chargeAll(Array<QuotaRequest>(1_000).fill(request));
        const left = (decision: Decision): readonly number[] => decision.quotas.map(({ remaining }) => remaining);
        const served = decisions.filter(({ kind }) => kind === 'charged');
        assert.deepEqual(
          served.map(left),
          Array.from({ length: 100 }, (_, i) => [perMinute - 1 - i, perDay - 1 - i]),
        );
        for (const decision of decisions.filter(({ kind }) => kind === 'refused')) {
          assert.deepEqual(left(decision), [perMinute - 100, perDay - 100]);
        }
      });
    }

    it(`a request is charged to neither quota if one has no room, counted in ${countedIn}`, async () => {
      const developer = newDeveloper();
      assert.equal(await charge(requestOf(developer, 2, 10)), 'charged 1 9');
      assert.equal(await charge(requestOf(developer, 2, 10)), 'charged 0 8');
      assert.equal(await charge(requestOf(developer, 2, 10)), 'refused 0 8');
      assert.equal(await charge(requestOf(developer, 10, 2)), 'refused 8 0');
      assert.equal(await charge(requestOf(developer, 2, 2)), 'refused 0 0');
      assert.equal(await charge(requestOf(developer, 3, 3)), 'charged 0 0');
    });

    it(`each developer, and each plan of a developer, has counters of its own in ${countedIn}`, async () => {
      const developer = newDeveloper();
      // Of ids and names that look alike strung together.
      for (const [id, plan] of [
        [developer, 'p'],
        [developer, 'q'],
        [newDeveloper(), 'p'],
        [Number(`${developer}1`), 'p'],
        [developer, '1p'],
      ] as const) {
        assert.equal(await charge(requestOf(id, 2, 10, plan)), 'charged 1 9', `${id} ${plan}`);
      }
    });

    it(`a changed plan applies from the next request, counted in ${countedIn}`, async () => {
      const developer = newDeveloper();
      await chargeAll(Array<QuotaRequest>(5).fill(requestOf(developer, 10, 100)));
      assert.equal(await charge(requestOf(developer, 3, 100)), 'refused 0 95');
      assert.equal(await charge(requestOf(developer, 7, 100)), 'charged 1 94');
      assert.equal(await charge(requestOf(developer, 2_147_483_647, 100)), 'charged 2147483640 93');
    });

    it(`reading the state of quotas in ${countedIn} charges nothing`, async () => {
      const request = requestOf(newDeveloper(), 5, 5);
      const read = async () => {
        const { quotas, countedIn: where } = await limiter.read(request);
        return [where, ...quotas.map(({ remaining }) => remaining)];
      };
      assert.deepEqual(await read(), [countedIn, 5, 5]);
      await charge(request);
      for (let i = 0; i < 2; i += 1) assert.deepEqual(await read(), [countedIn, 4, 4]);
    });

    it(`charged and refused requests are counted for metrics, decided in ${countedIn}`, async () => {
      const counts = limiter.decisions[countedIn] ?? assert.fail();
      const { charged, refused } = counts;
      const request = requestOf(newDeveloper(), 1, 1);
      await chargeAll([request, request, request]);
      assert.deepEqual([counts.charged, counts.refused], [charged + 1, refused + 2]);
    });
  });
}
