import assert from 'node:assert/strict';
import { FailedAddresses } from '../../src/limits/failed-addresses.js';
import { RedisLink } from '../../src/platform/redis/link.js';
import { eventually } from '../support/eventually.js';
import { readGuide } from '../support/guides.js';
import { testWorld } from '../support/world.js';

const HOUR_MS = 3_600_000;

describe('the addresses whose keys failed', () => {
  const world = testWorld({ redis: true });
  let now: number;
  let redis: RedisLink;

  before(async () => {
    redis = new RedisLink({ url: world.redis.url }, () => undefined);
    world.defer(() => redis.close());
    await redis.settled();
  });

  beforeEach(() => (now = 1_000 * HOUR_MS + Math.floor(Math.random() * 100_000) * 10 * HOUR_MS));

  for (const [where, link] of [
    ['in Redis', () => redis],
    ['in a process without Redis', () => undefined],
  ] as const) {
    it(`addresses are counted ${where} in this hour and the one before, and listed by their number`, async () => {
      const addresses = new FailedAddresses(link(), () => now);
      for (const address of ['192.0.2.1', '192.0.2.2', '192.0.2.2']) await addresses.count(address);
      now += HOUR_MS;
      await addresses.count('192.0.2.1');
      await addresses.count('192.0.2.1');
      assert.deepEqual(await addresses.list(10), [
        { address: '192.0.2.1', failures: 3 },
        { address: '192.0.2.2', failures: 2 },
      ]);
      assert.deepEqual(await addresses.list(1), [{ address: '192.0.2.1', failures: 3 }]);
      now += HOUR_MS;
      assert.deepEqual(await addresses.list(10), [{ address: '192.0.2.1', failures: 2 }]);
    });
  }

  it('servers that share a Redis list the addresses of each other, and Redis forgets them', async () => {
    const [one, other] = [new FailedAddresses(redis, () => now), new FailedAddresses(redis, () => now)];
    await one.count('192.0.2.1');
    await other.count('192.0.2.1');
    assert.deepEqual(await other.list(10), [{ address: '192.0.2.1', failures: 2 }]);
    const key = `{catalog}:failed-addresses:${now / HOUR_MS}`;
    const seconds = await redis.client.ttl(key);
    assert.ok(seconds > 7_000 && seconds <= 7_200, String(seconds));
  });

  it('a failure that Redis counts after the wait for it has ended is counted once', async () => {
    const impatient = new RedisLink({ url: world.redis.url }, () => undefined, { timeoutMs: 50 });
    world.defer(() => impatient.close());
    await impatient.settled();
    const addresses = new FailedAddresses(impatient, () => now);
    await redis.client.call('client', 'pause', '200', 'ALL');
    await addresses.count('192.0.2.1');
    assert.ok(!impatient.isUp);
    await eventually('Redis answers again', () => impatient.isUp);
    assert.deepEqual(await addresses.list(1), [{ address: '192.0.2.1', failures: 1 }]);
  });

  it('addresses are counted and listed with no more rights in Redis than the guide grants', async () => {
    const [, keys = assert.fail(), commands = assert.fail()] =
      /needs the keys `(.+?)` and the commands `(.+?)`/.exec(await readGuide('configure')) ?? [];
    await redis.client.call('acl', 'setuser', 'limited', 'on', '>secret', keys, ...commands.split(' '));
    const url = new URL(world.redis.url);
    [url.username, url.password] = ['limited', 'secret'];
    const limited = new RedisLink({ url: url.href }, () => undefined);
    world.defer(() => limited.close());
    await limited.settled();
    await new FailedAddresses(limited, () => now).count('192.0.2.1');
    assert.deepEqual(await new FailedAddresses(limited, () => now).list(10), [{ address: '192.0.2.1', failures: 1 }]);
    assert.ok(limited.isUp);
  });

  it('no number of addresses fills the memory, and an address that fails often is kept', async () => {
    const key = `{catalog}:failed-addresses:${now / HOUR_MS}`;
    const many = Array.from({ length: 10_000 }, (_, index) => [2, `192.0.${index}`]).flat();
    await redis.client.zadd(key, ...(many as [number, string]));
    const addresses = new FailedAddresses(redis, () => now);
    for (let i = 0; i < 1_000; i += 1) await addresses.count(i % 2 === 0 ? '198.51.100.1' : `203.0.${i}`);
    assert.equal(await redis.client.zcard(key), 10_000);
    assert.deepEqual(await addresses.list(1), [{ address: '198.51.100.1', failures: 500 }]);
    assert.equal(await redis.client.zscore(key, '203.0.1'), null);
  });
});
