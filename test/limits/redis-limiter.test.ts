import assert from 'node:assert/strict';
import { Redis } from 'ioredis';
import type { Plan } from '../../src/limits/plans.js';
import type { LimitDecision } from '../../src/limits/quotas.js';
import { readCounts, RedisLimiter } from '../../src/limits/redis-limiter.js';
import { RedisLink } from '../../src/platform/redis.js';
import { eventually } from '../support/eventually.js';
import { startRedis, type TestRedis } from '../support/redis.js';

function plan(requestsPerMinute: number, requestsPerDay: number): Plan {
  return { id: 'p', name: 'P', requestsPerMinute, requestsPerDay, commercialUse: false };
}

/** A decision as far as it does not depend on the time of day. */
function summary(decision: LimitDecision | undefined): unknown {
  return (
    decision && {
      remaining: decision.quotas.map(({ remaining }) => remaining),
      violated: decision.violated.map(({ name }) => name),
    }
  );
}

describe('the limiter in Redis', () => {
  let server: TestRedis;
  let direct: Redis;
  let link: RedisLink;
  const events: string[] = [];
  let developers = 0;
  const newDeveloper = (): number => ++developers;
  const TOKEN = '{catalog}:token';

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
    assert.deepEqual(await new RedisLimiter(link).consume(newDeveloper(), plan(60, 10_000)), {
      quotas: [
        { name: 'minute', limit: 60, windowSeconds: 60, remaining: 59, resetSeconds: 60 },
        { name: 'day', limit: 10_000, windowSeconds: 86_400, remaining: 9_999, resetSeconds: 86_400 },
      ],
      violated: [],
    });
  });

  it('lets no window last longer than it should, whatever the clock did', async () => {
    const developer = newDeveloper();
    const limiter = new RedisLimiter(link);
    await limiter.consume(developer, plan(1, 10));
    const counter = `{catalog}:count:minute:${developer}:p`;
    await direct.pexpire(counter, 7_200_000);
    const { quotas, violated } = await limiter.consume(developer, plan(1, 10));
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
        Array.from({ length: 1_000 }, (_, i) => limiters[i % 2]?.consume(developer, limits) ?? assert.fail()),
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
    await limiter.consume(developer, plan(1, 1));
    assert.deepEqual(summary(await limiter.consume(developer, plan(1, 1))), {
      remaining: [0, 0],
      violated: ['minute', 'day'],
    });
    assert.deepEqual(summary(await limiter.consume(developer, plan(3, 9))), { remaining: [1, 7], violated: [] });
  });

  it('begins a window with its first request, and ends it on time', async () => {
    const limiter = new RedisLimiter(link);
    const developer = newDeveloper();
    const key = `{catalog}:count:minute:${developer}:p`;
    await limiter.consume(developer, plan(1, 10));
    const left = await direct.pttl(key);
    assert.ok(left > 59_000 && left <= 60_000, String(left));
    await direct.pexpire(key, 60);
    assert.equal((await limiter.consume(developer, plan(1, 10))).quotas[0]?.resetSeconds, 1);
    await eventually('the window ends', async () => {
      const decision = await limiter.consume(developer, plan(1, 10));
      if (decision.violated.length > 0) return false;
      assert.deepEqual(summary(decision), { remaining: [0, 8], violated: [] });
      assert.equal(decision.quotas[0]?.resetSeconds, 60);
      return true;
    });
  });

  it('does not refuse for ever on a counter that has lost its end', async () => {
    const limiter = new RedisLimiter(link);
    const developer = newDeveloper();
    await limiter.consume(developer, plan(1, 10));
    await direct.persist(`{catalog}:count:minute:${developer}:p`);
    assert.deepEqual(summary(await limiter.consume(developer, plan(1, 10))), { remaining: [0, 8], violated: [] });
  });

  it('charges nothing unless the condition holds', async () => {
    const limiter = new RedisLimiter(link);
    const developer = newDeveloper();
    const ask = (value: string) => limiter.consumeIf({ key: TOKEN, value }, developer, plan(10, 10));
    assert.equal(await ask('a'), null); // there is none
    await direct.set(TOKEN, 'a');
    assert.deepEqual(summary((await ask('a')) ?? undefined), { remaining: [9, 9], violated: [] });
    assert.equal(await ask('b'), null);
    assert.equal(await ask('aa'), null);
    assert.deepEqual(summary((await ask('a')) ?? undefined), { remaining: [8, 8], violated: [] });
    await direct.del(TOKEN);
    assert.equal(await ask('a'), null);
  });

  it('charges in any case where it is only to tell whether a condition holds', async () => {
    const limiter = new RedisLimiter(link);
    const developer = newDeveloper();
    const ask = async (value: string) => {
      const { decision, holds } = await limiter.consumeAndCheck({ key: TOKEN, value }, developer, plan(10, 10));
      return { holds, ...(summary(decision) as object) };
    };
    await direct.del(TOKEN);
    assert.deepEqual(await ask('a'), { holds: false, remaining: [9, 9], violated: [] });
    await direct.set(TOKEN, 'a');
    assert.deepEqual(await ask('a'), { holds: true, remaining: [8, 8], violated: [] });
    assert.deepEqual(await ask('b'), { holds: false, remaining: [7, 7], violated: [] });
  });

  it('reads counts without charging', async () => {
    const developer = newDeveloper();
    assert.deepEqual(await readCounts(link, developer, plan(5, 5)), { minute: undefined, day: undefined });
    await new RedisLimiter(link).consume(developer, plan(5, 5));
    for (let i = 0; i < 2; i += 1) {
      const { minute, day } = await readCounts(link, developer, plan(5, 5));
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
    const decision = await new RedisLimiter(link).consume(newDeveloper(), plan(5, 5));
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
        await limiter.consume(developer, plan(10, 100));
        await strike();
        const decisions = await Promise.all(
          Array.from({ length: 30 }, () => limiter.consume(developer, plan(10, 100))),
        );
        assert.equal(decisions.filter(({ violated }) => violated.length === 0).length, 10);
        const condition = { key: TOKEN, value: 'a' };
        assert.equal(await limiter.consumeIf(condition, developer, plan(10, 100)), undefined);
        assert.equal((await limiter.consumeAndCheck(condition, developer, plan(10, 100))).holds, undefined);
        assert.equal(link.isUp, false);
        assert.deepEqual(events, ['lost']);
        await mend();
        await eventually('Redis is back', () => link.isUp);
        assert.deepEqual(events, ['lost', 'back']);
        const decision = await limiter.consume(developer, plan(10, 100));
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
