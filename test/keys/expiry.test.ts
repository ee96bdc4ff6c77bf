import assert from 'node:assert/strict';
import { renewEpoch } from '../../src/admission/epoch.js';
import { Fence } from '../../src/platform/postgres/fence.js';
import { systemClock } from '../../src/platform/time/micros.js';
import { createKey } from '../../src/keys/keys.js';
import { RedisLink } from '../../src/platform/redis/link.js';
import { eventually } from '../support/eventually.js';
import { assertEndsInTime, expireIn } from '../support/keys/expiry.js';
import { pastTriggers } from '../support/postgres/past-triggers.js';
import { assertProblem } from '../support/problem.js';
import { startRedis, type TestRedis } from '../support/redis.js';
import { startService, type TestService } from '../support/service.js';

const HOUR_US = 3_600_000_000n;

/** Long enough to be served some times first, in milliseconds. */
const LIFE_MS = 700;

describe('the expiry of a key', () => {
  let service: TestService;

  before(async () => (service = await startService()));
  after(() => service.stop());

  it('an expired key is refused by the very next request where nothing is cached', async () => {
    const { key, prefix } = await service.newKey();
    await expireIn(service.db, prefix, LIFE_MS);
    const status = async (): Promise<number> =>
      (await service.get('/api/v1/me', { headers: { 'x-api-key': key } })).status;
    assert.ok((await assertEndsInTime(service.db, prefix, status)) > 0);
  });

  it('an expired key is answered like a revoked one', async () => {
    const { key, prefix } = await service.newKey();
    await expireIn(service.db, prefix, 0);
    const reply = await service.get('/api/v1/me', { headers: { 'x-api-key': key } });
    assertProblem(reply, 'invalid_api_key', {
      detail: 'The API key is unknown, revoked or expired, or its developer is suspended. Check it, or get a new one.',
      headers: { 'www-authenticate': 'Bearer realm="catalog", error="invalid_token"' },
    });
  });

  it('an expiry counts from the creation of the key, or is a point in time', async () => {
    const { db } = service;
    const [developerId = 0] = await db('developers').limit(1).pluck<number[]>('id');
    const details = { developerId, planId: 'free' };
    const after = await createKey(db, { ...details, expires: { kind: 'after', seconds: 86_400 } });
    assert.equal(Date.parse(after.expiresAt ?? '') - Date.parse(after.createdAt), 86_400_000);
    const at = await createKey(db, { ...details, expires: { kind: 'at', time: '2100-01-31T00:00:00.000Z' } });
    assert.equal(at.expiresAt, '2100-01-31T00:00:00.000000Z');
    assert.equal((await createKey(db, details)).expiresAt, null);
  });
});

describe('the expiry of a cached key', () => {
  let redis: TestRedis;
  let link: RedisLink;
  let service: TestService;
  /** How far the clock of the server is set ahead, in microseconds. */
  let ahead = 0n;

  before(async () => {
    redis = await startRedis();
    link = new RedisLink(redis.address, () => undefined);
    await link.settled();
    service = await startService({ redisUrl: redis.url, now: () => systemClock() + ahead });
  });

  after(async () => {
    await service.stop();
    link.close();
    await redis.stop();
  });

  async function status(key: string): Promise<number> {
    return (await service.get('/api/v1/me', { headers: { 'x-api-key': key } })).status;
  }

  async function queriesFor(act: () => Promise<unknown>): Promise<number> {
    const before = service.queries.length;
    await act();
    return service.queries.length - before;
  }

  /** @returns a key that ends in some milliseconds, and is cached with that end */
  async function newCachedKey(ms: number): Promise<{ key: string; prefix: string }> {
    const created = await service.newKey();
    await expireIn(service.db, created.prefix, ms);
    await eventually(
      'the key is cached',
      async () => (await queriesFor(async () => assert.equal(await status(created.key), 200))) === 0,
    );
    return created;
  }

  it('a cached key is refused as soon as it expires', async () => {
    const { key, prefix } = await newCachedKey(2 * LIFE_MS);
    assert.ok((await assertEndsInTime(service.db, prefix, () => status(key))) > 0);
  });

  for (const [what, jumps] of [
    ['back', [-HOUR_US]],
    ['ahead and back', [HOUR_US, 0n]],
  ] as const) {
    it(`a cached key is refused as soon as it expires, even if the clock of the server is set ${what}`, async () => {
      const { key, prefix } = await newCachedKey(2 * LIFE_MS);
      try {
        for (const jump of jumps) {
          ahead = jump;
          assert.equal(await status(key), 200);
        }
        assert.ok((await assertEndsInTime(service.db, prefix, () => status(key))) > 0);
      } finally {
        ahead = 0n;
      }
    });
  }

  it('a cached key costs one query when the clock of the server is set ahead', async () => {
    const { key } = await newCachedKey(60_000);
    try {
      ahead = 2n * HOUR_US;
      assert.equal(await queriesFor(async () => assert.equal(await status(key), 200)), 1);
      assert.equal(await queriesFor(async () => assert.equal(await status(key), 200)), 0);
    } finally {
      ahead = 0n;
    }
  });

  it('an expiry that is brought forward applies from the next request on', async () => {
    const { key, prefix } = await newCachedKey(60_000);
    await pastTriggers(service.db, 'api_keys', (db) => expireIn(db, prefix, 0));
    await renewEpoch(link, new Fence());
    assert.equal(await status(key), 401);
  });

  it('an expiry that is brought forward in plain SQL is announced', async () => {
    const { key, prefix } = await newCachedKey(60_000);
    await expireIn(service.db, prefix, 0);
    await eventually('the key is refused', async () => (await status(key)) === 401);
  });

  it('an expired key is accepted again after its expiry is put off', async () => {
    const { key, prefix } = await newCachedKey(60_000);
    await expireIn(service.db, prefix, 0);
    await eventually('the key is refused', async () => (await status(key)) === 401);
    await expireIn(service.db, prefix, 60_000);
    assert.equal(await status(key), 200);
  });
});
