import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import type { ConditionalCharge, Decision, Limiter, QuotaRequest } from '../../../src/admission/charge/limiter.js';
import { MemoryLimiter } from '../../../src/admission/charge/memory.js';
import { RedisLimiter } from '../../../src/admission/charge/redis.js';
import { createVersion, renewVersions, TIMELINE_KEY, versionKey } from '../../../src/admission/versions.js';
import { FailedAttempts } from '../../../src/limits/failed-attempts.js';
import { Fence } from '../../../src/platform/postgres/fence.js';
import { RedisLink, RedisUnavailable, type RedisListener } from '../../../src/platform/redis/link.js';
import { eventually, GIVE_UP_MS } from '../../support/eventually.js';
import { startRedis, type TestRedis } from '../../support/redis/redis.js';

/** The most requests that one command charges. */
const BATCH = 16;

/** Runs of each property. */
const RUNS = 40;

let developers = 0;

/** @returns an id that no other test uses */
function nextDeveloperId(): number {
  developers += 1;
  return developers;
}

function requestOf(developerId: number, requestsPerMinute: number, requestsPerDay: number, id = 'p'): QuotaRequest {
  return { developerId, plan: { id, name: 'P', requestsPerMinute, requestsPerDay, commercialUse: false } };
}

/** What was decided, and what is left of the minute and of the day: `charged 59 9999`. */
function inShort(charge: ConditionalCharge): string {
  if (charge.kind === 'unconfirmed') return `unconfirmed ${charge.version?.token}`;
  return [charge.kind, ...charge.quotas.map(({ remaining }) => remaining)].join(' ');
}

/** Charges one after the other: the developer by a number, the limits of the plan and its id, and what is decided. */
type Script = readonly (readonly [
  developer: number,
  perMinute: number,
  perDay: number,
  plan: string,
  decision: string,
])[];

const SCRIPTS: Readonly<Record<string, Script>> = {
  'a request is charged to neither quota if one has no room': [
    [0, 2, 10, 'p', 'charged 1 9'],
    [0, 2, 10, 'p', 'charged 0 8'],
    [0, 2, 10, 'p', 'refused 0 8'],
    [0, 10, 2, 'p', 'refused 8 0'],
    [0, 2, 2, 'p', 'refused 0 0'],
    [0, 3, 3, 'p', 'charged 0 0'],
  ],
  // Of ids and names that look alike strung together.
  'each developer, and each plan of a developer, has counters of its own': [
    [1, 2, 10, 'p', 'charged 1 9'],
    [1, 2, 10, 'q', 'charged 1 9'],
    [2, 2, 10, 'p', 'charged 1 9'],
    [11, 2, 10, 'p', 'charged 1 9'],
    [1, 2, 10, '1p', 'charged 1 9'],
  ],
  'a changed plan applies from the next request': [
    [0, 10, 100, 'p', 'charged 9 99'],
    [0, 10, 100, 'p', 'charged 8 98'],
    [0, 1, 100, 'p', 'refused 0 98'],
    [0, 3, 100, 'p', 'charged 0 97'],
    [0, 2_147_483_647, 100, 'p', 'charged 2147483643 96'],
  ],
};

describe('limiters', () => {
  let server: TestRedis;
  let direct: Redis;
  let link: RedisLink;
  let limiter: RedisLimiter;
  /** Of the link when the tests begin. */
  let session: number;
  const events: string[] = [];

  /** A link that takes as long as it must: a thousand requests are no outage, on no machine. */
  const patientLink = (onChange: RedisListener = () => undefined): RedisLink =>
    new RedisLink(server.address, onChange, { timeoutMs: GIVE_UP_MS });

  before(async () => {
    server = await startRedis();
    direct = new Redis(server.url);
    direct.on('error', () => undefined);
    link = patientLink((state) => events.push(state));
    await link.settled();
    limiter = new RedisLimiter(link);
    session = await link.run(versionKey(1), (_client, current) => Promise.resolve(current));
  });

  after(async () => {
    link.close();
    direct.disconnect();
    await server.stop();
  });

  for (const [countedIn, open] of [
    ['process', () => new MemoryLimiter()],
    ['redis', () => new RedisLimiter(link)],
  ] as const) {
    describe(`that count in ${countedIn}`, () => {
      let tested: Limiter;

      before(() => (tested = open()));

      for (const [title, script] of Object.entries(SCRIPTS)) {
        it(`${title}, counted in ${countedIn}`, async () => {
          const first = (developers += 100);
          const decisions = [];
          for (const [developer, perMinute, perDay, plan] of script) {
            const request = requestOf(Number(`${first}${developer}`), perMinute, perDay, plan);
            decisions.push(inShort(await tested.charge(request)));
          }
          assert.deepEqual(
            decisions,
            script.map((step) => step[4]),
          );
        });
      }

      it(`exactly 100 of 1,000 concurrent requests are charged, whichever quota they use up, counted in ${countedIn}`, async () => {
        for (const [perMinute, perDay] of [
          [100, 500],
          [500, 100],
        ] as const) {
          const request = requestOf(nextDeveloperId(), perMinute, perDay);
          const decisions = await Promise.all(Array.from({ length: 1_000 }, () => tested.charge(request)));
          const left = ({ quotas }: Decision): readonly number[] => quotas.map(({ remaining }) => remaining);
          assert.deepEqual(
            decisions.filter(({ kind }) => kind === 'charged').map(left),
            Array.from({ length: 100 }, (_, i) => [perMinute - 1 - i, perDay - 1 - i]),
          );
          for (const decision of decisions.filter(({ kind }) => kind === 'refused')) {
            assert.deepEqual(left(decision), [perMinute - 100, perDay - 100]);
          }
        }
      });

      it(`a window ends when its first request said, whatever follows, counted in ${countedIn}`, async () => {
        const request = requestOf(nextDeveloperId(), 2, 10);
        const resetSeconds = async (): Promise<number> => (await tested.read(request)).quotas[0]?.resetSeconds ?? 0;
        await tested.charge(request);
        const left = await eventually('a second has passed', async () => {
          const seconds = await resetSeconds();
          return seconds < 60 && seconds;
        });
        // One that has room, and one that has none.
        for (let i = 0; i < 2; i += 1) await tested.charge(request);
        assert.ok((await resetSeconds()) <= left);
      });

      it(`the state of each quota is reported, reading it charges nothing, and decisions are counted for metrics, in ${countedIn}`, async () => {
        const counts = tested.decisions[countedIn] ?? assert.fail();
        const { charged, refused } = counts;
        const request = requestOf(nextDeveloperId(), 1, 5);
        const full = { name: 'minute', limit: 1, windowSeconds: 60, remaining: 1, resetSeconds: 60 };
        const day = { name: 'day', limit: 5, windowSeconds: 86_400, remaining: 5, resetSeconds: 86_400 };
        assert.deepEqual(await tested.read(request), { countedIn, quotas: [full, day] });
        const { quotas } = await tested.charge(request);
        assert.deepEqual(quotas, [
          { ...full, remaining: 0 },
          { ...day, remaining: 4 },
        ]);
        for (let i = 0; i < 2; i += 1) {
          const { quotas: read } = await tested.read(request);
          assert.deepEqual(
            read.map(({ remaining }) => remaining),
            [0, 4],
          );
        }
        await Promise.all([tested.charge(request), tested.charge(request)]);
        assert.deepEqual([counts.charged, counts.refused], [charged + 1, refused + 2]);
      });
    });
  }

  const charge = async (request: QuotaRequest): Promise<string> => inShort(await limiter.charge(request));

  /** Charges under a version; undefined for any. */
  const chargeUnder = async (token: string | undefined, request: QuotaRequest, by = limiter): Promise<string> =>
    inShort(await (token === undefined ? by.charge(request) : by.chargeUnder({ token, session }, request)));

  /** @returns the id of a developer that no other test uses, whose version is `now` */
  async function nextVersioned(): Promise<number> {
    const id = nextDeveloperId();
    await direct.set(versionKey(id), 'now');
    return id;
  }

  /** Charges requests at once. @returns what became of each, and how many commands that took */
  async function chargeTogether(requests: readonly QuotaRequest[]): Promise<{ charges: string[]; commands: number }> {
    const count = async () => Number(/cmdstat_evalsha:calls=(\d+)/.exec(await direct.info('commandstats'))?.[1] ?? 0);
    const before = await count();
    const charges = await Promise.all(requests.map(charge));
    return { charges, commands: (await count()) - before };
  }

  it('a window in Redis begins with its first request and ends on time, also when the clock was set back or its end is lost', async () => {
    const request = requestOf(nextDeveloperId(), 1, 10);
    const counter = `catalog:{${request.developerId}}:minute:p`;
    const resetSeconds = async (): Promise<number> => (await limiter.read(request)).quotas[0]?.resetSeconds ?? 0;
    assert.equal(await charge(request), 'charged 0 9');
    assert.ok((await direct.pttl(counter)) > 0);
    await direct.pexpire(counter, 30_000);
    assert.equal(await charge(request), 'refused 0 9');
    assert.ok((await resetSeconds()) <= 30);

    await direct.pexpire(counter, 7_200_000);
    assert.equal(await charge(request), 'refused 0 9');
    assert.ok((await direct.pttl(counter)) <= 60_000);

    await direct.pexpire(counter, 1);
    await eventually('the window ends', async () => (await charge(request)) === 'charged 0 8');
    await direct.persist(counter);
    assert.equal(await charge(request), 'charged 0 7');
    assert.ok((await direct.pttl(counter)) > 0);
  });

  it('a request is charged only under the version that it requires, and any other version is reported', async () => {
    const request = requestOf(nextDeveloperId(), 10, 10);
    const version = versionKey(request.developerId);
    assert.equal(await chargeUnder('a', request), 'unconfirmed ');
    assert.deepEqual((await limiter.charge(request)).version, { token: '', session });
    await direct.set(version, 'a');
    assert.equal(await chargeUnder('a', request), 'charged 8 8');
    for (const other of ['b', 'aa']) assert.equal(await chargeUnder(other, request), 'unconfirmed a');
    assert.deepEqual((await limiter.charge(request)).version, { token: 'a', session });
    assert.equal((await limiter.chargeUnder({ token: 'a', session }, request)).version, undefined);
    const other = requestOf(nextDeveloperId(), 10, 10);
    assert.deepEqual(
      await Promise.all([chargeUnder('a', other), chargeUnder('a', request), chargeUnder('b', request)]),
      ['unconfirmed ', 'charged 5 5', 'unconfirmed a'],
    );
  });

  it('requests that arrive together are charged in one command, in the order of their arrival', async () => {
    const { charges, commands } = await chargeTogether(
      Array<QuotaRequest>(5).fill(requestOf(nextDeveloperId(), 3, 10)),
    );
    assert.deepEqual(charges, ['charged 2 9', 'charged 1 8', 'charged 0 7', 'refused 0 7', 'refused 0 7']);
    assert.equal(commands, 1);
    const many = await chargeTogether(Array.from({ length: 3 * BATCH }, () => requestOf(nextDeveloperId(), 1, 1)));
    assert.deepEqual([new Set(many.charges), many.commands], [new Set(['charged 0 0']), 3]);
  });

  it('requests of one command are decided as if each had its own', async () => {
    const request = fc.record({
      developer: fc.nat(2),
      perMinute: fc.integer({ min: 1, max: 4 }),
      perDay: fc.integer({ min: 1, max: 4 }),
      plan: fc.constantFrom('one', 'two'),
      version: fc.constantFrom('now', 'then', undefined),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(request, { maxLength: 20 }), async (requests) => {
        const decide = async (by: RedisLimiter): Promise<string[]> => {
          const ids = [await nextVersioned(), await nextVersioned(), nextDeveloperId()];
          return Promise.all(
            requests.map(({ developer, perMinute, perDay, plan, version }) =>
              chargeUnder(version, requestOf(ids[developer] ?? 0, perMinute, perDay, plan), by),
            ),
          );
        };
        assert.deepEqual(await decide(limiter), await decide(new RedisLimiter(link, 1)));
      }),
      { numRuns: RUNS },
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
            const run = async (...command: Parameters<typeof link.run>): Promise<unknown> => {
              await pass();
              const answer = await link.run(...command);
              await pass();
              return answer;
            };
            return new RedisLimiter({ slotOf: () => 0, run } as unknown as RedisLink);
          });
          const ids = [await nextVersioned(), await nextVersioned()];
          const limits = [3, 5];
          const outcomes: string[][] = [[], []];
          await scheduler.waitFor(
            Promise.all(
              requests.map(async ({ server: place, developer }) => {
                await pass();
                const request = requestOf(ids[developer] ?? 0, limits[developer] ?? 0, 100);
                outcomes[developer]?.push(await chargeUnder('now', request, servers[place]));
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
      { numRuns: RUNS },
    );
  });

  it('a reply that comes after its shard was given up confirms nothing', async () => {
    const [late, other] = [requestOf(await nextVersioned(), 5, 5), requestOf(await nextVersioned(), 5, 5)];
    const lateKey = versionKey(late.developerId);
    let replied: Promise<unknown> = Promise.resolve();
    const run = async (...[key, command]: Parameters<typeof link.run>): Promise<unknown> => {
      if (key === lateKey) {
        replied = link.run(key, command);
        throw new RedisUnavailable('Redis took too long');
      }
      await replied;
      return link.run(key, command);
    };
    const slotOf = (key: string): number => Number(key === lateKey);
    const sharded = new RedisLimiter({ slotOf, run } as unknown as RedisLink);
    const charges = Promise.all([chargeUnder('now', late, sharded), chargeUnder('now', other, sharded)]);
    assert.deepEqual(await charges, ['unconfirmed undefined', 'charged 4 4']);
  });

  it('all keys in Redis of a developer are in one slot of a cluster, and the script is sent again if Redis has lost it', async () => {
    const keys = await direct.keys('*');
    assert.ok(keys.length > 5);
    for (const key of keys) assert.match(key, /^catalog:(\{\d+\}:(version|(minute|day):[a-z0-9]+)|probe:\d+)$/);
    await direct.script('FLUSH');
    assert.equal(await charge(requestOf(nextDeveloperId(), 5, 5)), 'charged 4 4');
    assert.deepEqual(events, []);
  });

  it('what Redis keeps ends by itself when its time is over, except the timeline', async () => {
    const LIFETIMES_MS: Readonly<Record<string, number>> = {
      'catalog:{1}:minute:p': 60_000,
      'catalog:{1}:day:p': 86_400_000,
      'catalog:{1}:version': 7 * 86_400_000,
      'catalog:{2}:version': 7 * 86_400_000,
      'catalog:failures:192.0.2.1': 60_000,
    };
    await direct.flushall();
    const own = patientLink();
    try {
      await own.settled();
      const fence = new Fence();
      for (const id of [1, 2]) await createVersion(own, fence, id);
      await renewVersions(own, fence, [2]);
      await new RedisLimiter(own).charge(requestOf(1, 5, 5));
      await new FailedAttempts(own).count('192.0.2.1');
    } finally {
      own.close();
    }
    for (const [key, lifetimeMs] of Object.entries(LIFETIMES_MS)) {
      const leftMs = await direct.pttl(key);
      // With seconds for milliseconds, or the reverse, a thousand times as much or as little.
      assert.ok(leftMs <= lifetimeMs && leftMs > lifetimeMs / 60, `${key}: ${leftMs}`);
    }
    assert.equal(await direct.pttl(TIMELINE_KEY), -1);
    const others = (await direct.keys('*')).filter((key) => LIFETIMES_MS[key] === undefined && key !== TIMELINE_KEY);
    // A probe, unless it is over by now.
    for (const key of others) assert.ok(key === 'catalog:probe:0' && (await direct.pttl(key)) <= 1_000, key);
  });
});
