import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import type { QuotaRequest } from '../../../src/admission/charge/limiter.js';
import { RedisLimiter } from '../../../src/admission/charge/redis.js';
import { EPOCH_KEY } from '../../../src/admission/epoch.js';
import { RedisLink } from '../../../src/platform/redis/link.js';
import { eventually } from '../../support/eventually.js';
import { startRedis, type TestRedis } from '../../support/redis/redis.js';
import { inShort, newDeveloper, requestOf } from './requests.js';

/** The most requests that one command charges. */
const BATCH = 16;

describe('a limiter in Redis', () => {
  let server: TestRedis;
  let direct: Redis;
  let link: RedisLink;
  let limiter: RedisLimiter;
  const events: string[] = [];

  before(async () => {
    server = await startRedis();
    direct = new Redis(server.url);
    direct.on('error', () => undefined);
    link = new RedisLink(server.address, (state) => events.push(state));
    await link.settled();
    limiter = new RedisLimiter(link);
    await direct.set(EPOCH_KEY, 'now');
  });

  after(async () => {
    link.close();
    direct.disconnect();
    await server.stop();
  });

  const charge = async (request: QuotaRequest): Promise<string> => inShort(await limiter.charge(request));

  /** Charges under an epoch; undefined for any. */
  const chargeUnder = async (epoch: string | undefined, request: QuotaRequest, by = limiter): Promise<string> =>
    inShort(await (epoch === undefined ? by.charge(request) : by.chargeUnder(epoch, request)));

  /** Charges requests at once. @returns what became of each, and how many commands that took */
  async function chargeTogether(requests: readonly QuotaRequest[]): Promise<{ charges: string[]; commands: number }> {
    const count = async () => Number(/cmdstat_evalsha:calls=(\d+)/.exec(await direct.info('commandstats'))?.[1] ?? 0);
    const before = await count();
    const charges = await Promise.all(requests.map(charge));
    return { charges, commands: (await count()) - before };
  }

  it('a window begins with its first request and ends on time', async () => {
    const developer = newDeveloper();
    const key = `{catalog}:count:minute:${developer}:p`;
    await charge(requestOf(developer, 1, 10));
    const left = await direct.pttl(key);
    assert.ok(left > 59_000 && left <= 60_000, String(left));
    await direct.pexpire(key, 60);
    assert.equal((await limiter.charge(requestOf(developer, 1, 10))).quotas[0]?.resetSeconds, 1);
    await eventually('the window ends', async () => (await charge(requestOf(developer, 1, 10))) === 'charged 0 8');
    assert.equal((await limiter.charge(requestOf(developer, 1, 10))).quotas[0]?.resetSeconds, 60);
  });

  it('a window ends in time after the clock of Redis was set back', async () => {
    const request = requestOf(newDeveloper(), 1, 10);
    await charge(request);
    const counter = `{catalog}:count:minute:${request.developerId}:p`;
    await direct.pexpire(counter, 7_200_000);
    const { kind, quotas } = await limiter.charge(request);
    assert.deepEqual([kind, quotas[0]?.resetSeconds], ['refused', 60]);
    assert.ok((await direct.pttl(counter)) <= 60_000);
  });

  it('a new window begins if a counter has lost its end', async () => {
    const request = requestOf(newDeveloper(), 1, 10);
    await charge(request);
    await direct.persist(`{catalog}:count:minute:${request.developerId}:p`);
    assert.equal(await charge(request), 'charged 0 8');
  });

  it('a request is charged only under the epoch that it requires, and the epoch is always reported', async () => {
    const request = requestOf(newDeveloper(), 10, 10);
    try {
      await direct.del(EPOCH_KEY);
      assert.equal(await chargeUnder('a', request), 'unconfirmed ');
      assert.equal((await limiter.charge(request)).epoch, '');
      await direct.set(EPOCH_KEY, 'a');
      assert.equal(await chargeUnder('a', request), 'charged 8 8');
      for (const other of ['b', 'aa']) assert.equal(await chargeUnder(other, request), 'unconfirmed a');
      assert.equal((await limiter.charge(request)).epoch, 'a');
      assert.equal(await chargeUnder('a', request), 'charged 6 6');
    } finally {
      await direct.set(EPOCH_KEY, 'now');
    }
  });

  it('requests that arrive together are charged in one command, in the order of their arrival', async () => {
    const { charges, commands } = await chargeTogether(Array<QuotaRequest>(5).fill(requestOf(newDeveloper(), 3, 10)));
    assert.deepEqual(charges, ['charged 2 9', 'charged 1 8', 'charged 0 7', 'refused 0 7', 'refused 0 7']);
    assert.equal(commands, 1);
    const many = await chargeTogether(Array.from({ length: 3 * BATCH }, () => requestOf(newDeveloper(), 1, 1)));
    assert.deepEqual([new Set(many.charges), many.commands], [new Set(['charged 0 0']), 3]);
  });

  it('requests of one command are decided as if each had its own', async () => {
    const request = fc.record({
      developer: fc.nat(2),
      perMinute: fc.integer({ min: 1, max: 4 }),
      perDay: fc.integer({ min: 1, max: 4 }),
      plan: fc.constantFrom('one', 'two'),
      epoch: fc.constantFrom('now', 'then', undefined),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(request, { maxLength: 20 }), async (requests) => {
        const decide = (by: RedisLimiter): Promise<string[]> => {
          const developers = [0, 1, 2].map(newDeveloper);
          return Promise.all(
            requests.map(({ developer, perMinute, perDay, plan, epoch }) =>
              chargeUnder(epoch, requestOf(developers[developer] ?? 0, perMinute, perDay, plan), by),
            ),
          );
        };
        assert.deepEqual(await decide(limiter), await decide(new RedisLimiter(link, 1)));
      }),
      { numRuns: 100 },
    );
  });

  it('requests are charged exactly up to the quota, in whatever order commands of several servers arrive and are answered', async () => {
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
            return new RedisLimiter({ client: link.client, run } as unknown as RedisLink);
          });
          const developers = [newDeveloper(), newDeveloper()];
          const limits = [3, 5];
          const outcomes: string[][] = [[], []];
          await scheduler.waitFor(
            Promise.all(
              requests.map(async ({ server, developer }) => {
                await pass();
                const request = requestOf(developers[developer] ?? 0, limits[developer] ?? 0, 100);
                outcomes[developer]?.push(await chargeUnder('now', request, servers[server]));
              }),
            ),
          );
          for (const [developer, limit] of limits.entries()) {
            const asked = requests.filter((request) => request.developer === developer).length;
            const expected = Array.from({ length: asked }, (_, i) =>
              i < limit ? `charged ${limit - 1 - i} ${99 - i}` : `refused 0 ${100 - limit}`,
            );
            assert.deepEqual(outcomes[developer]?.toSorted(), expected.toSorted());
          }
        },
      ),
      { numRuns: 100 },
    );
  });

  it('all keys in Redis are in one slot of a cluster', async () => {
    const keys = await direct.keys('*');
    assert.ok(keys.length > 5);
    for (const key of keys) assert.match(key, /^\{catalog\}:[a-z]+/);
  });

  it('the script is sent again if Redis has lost it', async () => {
    await direct.script('FLUSH');
    assert.equal(await charge(requestOf(newDeveloper(), 5, 5)), 'charged 4 4');
    assert.deepEqual(events, []);
  });

  const OUTAGES: Readonly<Record<string, readonly [strike: () => unknown, mend: () => unknown]>> = {
    frozen: [() => server.pause(), () => server.resume()],
    'a replica': [() => direct.replicaof('127.0.0.1', 1), () => direct.replicaof('NO', 'ONE')],
  };
  for (const [how, [strike, mend]] of Object.entries(OUTAGES)) {
    it(`requests are counted in this process while Redis is ${how}, and in Redis again afterwards`, async () => {
      const request = requestOf(newDeveloper(), 10, 100);
      events.length = 0;
      await charge(request);
      await strike();
      const charges = await Promise.all(Array.from({ length: 30 }, () => limiter.charge(request)));
      assert.equal(charges.filter(({ kind }) => kind === 'charged').length, 10);
      assert.ok(charges.every(({ epoch }) => epoch === undefined));
      assert.equal(await chargeUnder('now', request), 'unconfirmed undefined');
      assert.deepEqual([link.isUp, events], [false, ['lost']]);
      await mend();
      await eventually('Redis is back', () => link.isUp);
      assert.deepEqual(events, ['lost', 'up']);
      const { quotas } = await limiter.charge(request);
      // In Redis: the request before the failure, this one, and any that a frozen Redis carried out later.
      assert.ok(Number(quotas[1]?.remaining) <= 98);
      const counted = Number(await direct.get(`{catalog}:count:day:${request.developerId}:p`));
      assert.equal(quotas[1]?.remaining, 100 - counted);
    });
  }
});
