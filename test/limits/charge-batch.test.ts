import assert from 'node:assert/strict';
import type { Plan } from '../../src/limits/plans.js';
import type { LimitDecision } from '../../src/limits/quotas.js';
import { readCounts, RedisLimiter } from '../../src/limits/redis-limiter.js';
import { RedisLink, redisKey } from '../../src/platform/redis.js';
import { startRedis, type TestRedis } from '../support/redis.js';

/** More than one command takes. */
const ACCOUNTS = 150;

const TOKEN = redisKey('test-token');

function planOf(requestsPerMinute: number, requestsPerDay: number, id = 'test'): Plan {
  return { id, name: 'Test', requestsPerMinute, requestsPerDay, commercialUse: false };
}

/** What a decision says in short: remaining of the minute, remaining of the day, and what refused it. */
function inShort({ quotas, violated }: LimitDecision): string {
  return [...quotas.map(({ remaining }) => remaining), ...violated.map(({ name }) => name)].join(' ');
}

describe('requests that are charged together', () => {
  let redis: TestRedis;
  let link: RedisLink;
  let limiter: RedisLimiter;
  let commands: () => Promise<number>;

  before(async () => {
    redis = await startRedis();
    link = new RedisLink(redis.address, () => undefined);
    await link.settled();
    limiter = new RedisLimiter(link);
    commands = async () => Number(/cmdstat_evalsha:calls=(\d+)/.exec(await link.client.info('commandstats'))?.[1] ?? 0);
    // The script is known from here on.
    await limiter.consume(0, planOf(1, 1));
  });
  after(async () => {
    link.close();
    await redis.stop();
  });

  it('are served in the order of their arrival, as far as the smaller quota goes', async () => {
    const before = await commands();
    const decisions = await Promise.all(Array.from({ length: 5 }, () => limiter.consume(1, planOf(3, 10))));
    assert.deepEqual(decisions.map(inShort), ['2 9', '1 8', '0 7', '0 7 minute', '0 7 minute']);
    assert.equal(await commands(), before + 1);
    assert.equal((await readCounts(link, 1, planOf(3, 10))).day?.requests, 3);
  });

  it('are refused by every quota that is used up, and by no other', async () => {
    const plan = planOf(2, 2);
    const decisions = await Promise.all(Array.from({ length: 3 }, () => limiter.consume(2, plan)));
    assert.deepEqual(decisions.map(inShort), ['1 1', '0 0', '0 0 minute day']);
    assert.deepEqual((await Promise.all([limiter.consume(2, plan), limiter.consume(2, plan)])).map(inShort), [
      '0 0 minute day',
      '0 0 minute day',
    ]);
  });

  it('count for their own developer and plan alone, also where they are many', async () => {
    const before = await commands();
    const asked = Array.from({ length: ACCOUNTS * 2 }, (_, i) => ({
      developer: 100 + Math.floor(i / 2),
      plan: planOf(1 + (i % 2), 1_000, i % 2 === 0 ? 'one' : 'two'),
    }));
    const twice = [...asked, ...asked];
    const decisions = await Promise.all(twice.map(({ developer, plan }) => limiter.consume(developer, plan)));
    decisions.forEach((decision, i) => {
      const isTwo = i % 2 === 1;
      const isAgain = i >= asked.length;
      assert.equal(inShort(decision), isAgain ? (isTwo ? '0 998' : '0 999 minute') : isTwo ? '1 999' : '0 999');
    });
    // Some sixty accounts a command.
    const used = (await commands()) - before;
    assert.ok(used >= 5 && used <= 20, `${used} commands`);
  });

  it('are charged under the condition of each: the others go on', async () => {
    await link.run((client) => client.set(TOKEN, 'now'));
    const plan = planOf(10, 10);
    const [met, unmet, told, free] = await Promise.all([
      limiter.consumeIf({ key: TOKEN, value: 'now' }, 5, plan),
      limiter.consumeIf({ key: TOKEN, value: 'then' }, 5, plan),
      limiter.consumeAndCheck({ key: TOKEN, value: 'then' }, 5, plan),
      limiter.consume(5, plan),
    ]);
    assert.equal(met && inShort(met), '9 9');
    assert.equal(unmet, null);
    assert.deepEqual([inShort(told.decision), told.holds], ['8 8', false]);
    assert.equal(inShort(free), '7 7');
  });
});
