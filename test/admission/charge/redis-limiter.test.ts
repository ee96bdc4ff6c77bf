import assert from 'node:assert/strict';
import { Redis } from 'ioredis';
import { EPOCH_KEY } from '../../../src/admission/epoch.js';
import type { Plan } from '../../../src/limits/plans.js';
import type { QuotaRequest, QuotaResult } from '../../../src/admission/charge/limiter.js';
import { readQuotaCounters } from '../../../src/admission/charge/redis-charges.js';
import { RedisLimiter } from '../../../src/admission/charge/redis-limiter.js';
import { RedisLink } from '../../../src/platform/redis/link.js';
import { eventually } from '../../support/eventually.js';
import { startRedis, type TestRedis } from '../../support/redis.js';

function plan(requestsPerMinute: number, requestsPerDay: number): Plan {
  return { id: 'p', name: 'P', requestsPerMinute, requestsPerDay, commercialUse: false };
}

async function chargeBy(limiter: RedisLimiter, request: QuotaRequest): Promise<QuotaResult> {
  return (await limiter.chargeAndReadEpoch(request)).result;
}

/** A decision as far as it does not depend on the time of day. */
function summary({ quotas, violated }: QuotaResult): { remaining: number[]; violated: string[] } {
  return { remaining: quotas.map(({ remaining }) => remaining), violated: violated.map(({ name }) => name) };
}

describe('the limiter in Redis', () => {
  let server: TestRedis;
  let direct: Redis;
  let link: RedisLink;
  const events: string[] = [];
  let developers = 0;
  const newDeveloper = (): number => ++developers;

  before(async () => {
    server = await startRedis();
    direct = new Redis(server.url);
    direct.on('error', () => undefined);
    link = new RedisLink(server.address, (state) => events.push(state));
    await link.settled();
  });

  after(async () => {
    link.close();
    direct.disconnect();
    await server.stop();
  });

  it('tells where a caller stands with each quota', async () => {
    assert.deepEqual(await chargeBy(new RedisLimiter(link), { developerId: newDeveloper(), plan: plan(60, 10_000) }), {
      quotas: [
        { name: 'minute', limit: 60, windowSeconds: 60, remaining: 59, resetSeconds: 60 },
        { name: 'day', limit: 10_000, windowSeconds: 86_400, remaining: 9_999, resetSeconds: 86_400 },
      ],
      violated: [],
    });
  });

  it('ends every window in time, whatever the clock did', async () => {
    const developer = newDeveloper();
    const limiter = new RedisLimiter(link);
    await chargeBy(limiter, { developerId: developer, plan: plan(1, 10) });
    const counter = `{catalog}:count:minute:${developer}:p`;
    await direct.pexpire(counter, 7_200_000);
    const { quotas, violated } = await chargeBy(limiter, { developerId: developer, plan: plan(1, 10) });
    assert.deepEqual([violated[0]?.name, quotas[0]?.resetSeconds], ['minute', 60]);
    assert.ok((await direct.pttl(counter)) <= 60_000);
  });

  it('charges both quotas or none, and blames none that has room, however many ask at once', async () => {
    const limiters = [new RedisLimiter(link), new RedisLimiter(link)];
    for (const [limits, left, violated] of [
      [plan(100, 500), [0, 400], 'minute'],
      [plan(500, 100), [400, 0], 'day'],
    ] as const) {
      const developer = newDeveloper();
      const decisions = await Promise.all(
        Array.from({ length: 1_000 }, (_, i) =>
          chargeBy(limiters[i % 2] ?? assert.fail(), { developerId: developer, plan: limits }),
        ),
      );
      const served = decisions.filter((decision) => decision.violated.length === 0);
      assert.equal(served.length, 100);
      for (const decision of decisions.filter((each) => !served.includes(each))) {
        assert.deepEqual(summary(decision), { remaining: left, violated: [violated] });
      }
    }
  });

  it('names both quotas where both refuse, and follows a changed plan', async () => {
    const limiter = new RedisLimiter(link);
    const developer = newDeveloper();
    await chargeBy(limiter, { developerId: developer, plan: plan(1, 1) });
    assert.deepEqual(summary(await chargeBy(limiter, { developerId: developer, plan: plan(1, 1) })), {
      remaining: [0, 0],
      violated: ['minute', 'day'],
    });
    assert.deepEqual(summary(await chargeBy(limiter, { developerId: developer, plan: plan(3, 9) })), {
      remaining: [1, 7],
      violated: [],
    });
  });

  it('begins a window with its first request, and ends it on time', async () => {
    const limiter = new RedisLimiter(link);
    const developer = newDeveloper();
    const key = `{catalog}:count:minute:${developer}:p`;
    await chargeBy(limiter, { developerId: developer, plan: plan(1, 10) });
    const left = await direct.pttl(key);
    assert.ok(left > 59_000 && left <= 60_000, String(left));
    await direct.pexpire(key, 60);
    assert.equal((await chargeBy(limiter, { developerId: developer, plan: plan(1, 10) })).quotas[0]?.resetSeconds, 1);
    await eventually('the window ends', async () => {
      const decision = await chargeBy(limiter, { developerId: developer, plan: plan(1, 10) });
      if (decision.violated.length > 0) return false;
      assert.deepEqual(summary(decision), { remaining: [0, 8], violated: [] });
      assert.equal(decision.quotas[0]?.resetSeconds, 60);
      return true;
    });
  });

  it('does not refuse for ever on a counter that has lost its end', async () => {
    const limiter = new RedisLimiter(link);
    const developer = newDeveloper();
    await chargeBy(limiter, { developerId: developer, plan: plan(1, 10) });
    await direct.persist(`{catalog}:count:minute:${developer}:p`);
    assert.deepEqual(summary(await chargeBy(limiter, { developerId: developer, plan: plan(1, 10) })), {
      remaining: [0, 8],
      violated: [],
    });
  });

  it('charges nothing when the precondition fails', async () => {
    const limiter = new RedisLimiter(link);
    const request = { developerId: newDeveloper(), plan: plan(10, 10) };
    const ask = async (epoch: string) => {
      const outcome = await limiter.chargeIf(epoch, request, Infinity);
      return outcome.kind === 'decided' ? summary(outcome.result) : outcome.kind;
    };
    assert.equal(await ask('a'), 'precondition_failed'); // there is none
    await direct.set(EPOCH_KEY, 'a');
    assert.deepEqual(await ask('a'), { remaining: [9, 9], violated: [] });
    assert.equal(await ask('b'), 'precondition_failed');
    assert.equal(await ask('aa'), 'precondition_failed');
    assert.deepEqual(await ask('a'), { remaining: [8, 8], violated: [] });
    await direct.del(EPOCH_KEY);
    assert.equal(await ask('a'), 'precondition_failed');
  });

  it('charges without a precondition whatever the epoch, and reads that', async () => {
    const limiter = new RedisLimiter(link);
    const request = { developerId: newDeveloper(), plan: plan(10, 10) };
    assert.equal((await limiter.chargeAndReadEpoch(request)).epoch, '');
    await direct.set(EPOCH_KEY, 'a');
    const { result, epoch } = await limiter.chargeAndReadEpoch(request);
    assert.deepEqual({ epoch, ...summary(result) }, { epoch: 'a', remaining: [8, 8], violated: [] });
  });

  it('waits for Redis no longer than the request has time, and does not give it up for that', async () => {
    const limiter = new RedisLimiter(link);
    const request = { developerId: newDeveloper(), plan: plan(10, 10) };
    await direct.set(EPOCH_KEY, 'a');
    assert.deepEqual(await limiter.chargeIf('a', request, performance.now() - 1), { kind: 'unavailable' });
    // Nothing was sent for that one.
    assert.equal(summary(await chargeBy(limiter, request)).remaining[1], 9);
    server.pause();
    try {
      const startedAt = performance.now();
      assert.deepEqual(await limiter.chargeIf('a', request, startedAt + 50), { kind: 'unavailable' });
      assert.ok(performance.now() - startedAt < 200);
      assert.deepEqual([link.isUp, events], [true, []]);
    } finally {
      server.resume();
    }
  });

  it('reads counts without charging', async () => {
    const developer = newDeveloper();
    assert.deepEqual(await readQuotaCounters(link, developer, plan(5, 5)), { minute: undefined, day: undefined });
    await chargeBy(new RedisLimiter(link), { developerId: developer, plan: plan(5, 5) });
    for (let i = 0; i < 2; i += 1) {
      const { minute, day } = await readQuotaCounters(link, developer, plan(5, 5));
      assert.deepEqual([minute?.requests, day?.requests], [1, 1]);
      assert.ok(Number(minute?.msLeft) <= 60_000 && Number(day?.msLeft) <= 86_400_000);
    }
  });

  it('keeps all its keys in one slot of a cluster', async () => {
    const keys = await direct.keys('*');
    assert.ok(keys.length > 5);
    for (const key of keys) assert.match(key, /^\{catalog\}:[a-z]+/);
  });

  it('still knows its script when Redis has forgotten it', async () => {
    await direct.script('FLUSH');
    const decision = await chargeBy(new RedisLimiter(link), { developerId: newDeveloper(), plan: plan(5, 5) });
    assert.deepEqual(summary(decision), { remaining: [4, 4], violated: [] });
    assert.deepEqual(events, []);
  });

  describe('while Redis fails', () => {
    for (const [how, strike, mend] of [
      ['dead', () => server.kill(), () => server.restart()],
      [
        'frozen',
        async () => {
          server.pause();
        },
        async () => {
          server.resume();
        },
      ],
      [
        'full',
        async () => {
          await direct.config('SET', 'maxmemory', '1', 'maxmemory-policy', 'noeviction');
        },
        async () => {
          await direct.config('SET', 'maxmemory', '0');
        },
      ],
      [
        'a replica',
        async () => {
          await direct.replicaof('127.0.0.1', 1);
        },
        async () => {
          await direct.replicaof('NO', 'ONE');
        },
      ],
    ] as const) {
      it(`counts in this process, and in Redis again afterwards, where it was ${how}`, async () => {
        const limiter = new RedisLimiter(link);
        const developer = newDeveloper();
        events.length = 0;
        await chargeBy(limiter, { developerId: developer, plan: plan(10, 100) });
        await strike();
        const decisions = await Promise.all(
          Array.from({ length: 30 }, () => chargeBy(limiter, { developerId: developer, plan: plan(10, 100) })),
        );
        assert.equal(decisions.filter(({ violated }) => violated.length === 0).length, 10);
        const request = { developerId: developer, plan: plan(10, 100) };
        assert.deepEqual(await limiter.chargeIf('a', request, Infinity), { kind: 'unavailable' });
        assert.equal((await limiter.chargeAndReadEpoch(request)).epoch, undefined);
        assert.equal(link.isUp, false);
        assert.deepEqual(events, ['lost']);
        await mend();
        await eventually('Redis is back', () => link.isUp);
        assert.deepEqual(events, ['lost', 'up']);
        const decision = await chargeBy(limiter, { developerId: developer, plan: plan(10, 100) });
        // In Redis: the request before the failure, this one, and those that a frozen Redis carried out later.
        assert.ok(Number(decision.quotas[1]?.remaining) <= 98);
        assert.equal(
          decision.quotas[1]?.remaining,
          100 - Number(await direct.get(`{catalog}:count:day:${developer}:p`)),
        );
      });
    }
  });
});
