import assert from 'node:assert/strict';
import { renewEpoch } from '../../src/admission/epoch.js';
import { createKey } from '../../src/keys/keys.js';
import { Fence } from '../../src/platform/postgres/fence.js';
import { RedisLink } from '../../src/platform/redis/link.js';
import { systemClock } from '../../src/platform/time/micros.js';
import { eventually } from '../support/eventually.js';
import { assertEndsInTime, expireIn } from '../support/keys/expiry.js';
import { pastTriggers } from '../support/postgres/past-triggers.js';
import { testWorld } from '../support/world.js';

const HOUR_US = 3_600_000_000n;

/** Long enough to be served some times first, in milliseconds. */
const LIFE_MS = 1_400;

describe('the expiry of a key', () => {
  /** How far the clock of the server is set ahead, in microseconds. */
  let ahead = 0n;
  const world = testWorld({ redis: true, service: { now: () => systemClock() + ahead } });
  let link: RedisLink;

  before(async () => {
    link = new RedisLink(world.redis.address, () => undefined);
    world.defer(() => link.close());
    await link.settled();
  });

  afterEach(() => (ahead = 0n));

  async function status(key: string): Promise<number> {
    return (await world.service.get('/api/v1/me', { headers: { 'x-api-key': key } })).status;
  }

  /** @returns how many queries a request costs, which is served */
  async function queriesToServe(key: string): Promise<number> {
    const before = world.service.queries.length;
    assert.equal(await status(key), 200);
    return world.service.queries.length - before;
  }

  /** @returns a key that expires in some milliseconds, and is cached with that expiry */
  async function newCachedKey(ms: number): Promise<{ key: string; prefix: string }> {
    const created = await world.newKey();
    await expireIn(world.db, created.prefix, ms);
    await eventually('the key is cached', async () => (await queriesToServe(created.key)) === 0);
    return created;
  }

  it('an expiry counts from the creation of the key, or is a point in time', async () => {
    const details = { developerId: await world.newDeveloper(), planId: 'free' };
    const after = await createKey(world.db, { ...details, expires: { kind: 'after', seconds: 86_400 } });
    assert.equal(Date.parse(after.expiresAt ?? '') - Date.parse(after.createdAt), 86_400_000);
    const at = await createKey(world.db, { ...details, expires: { kind: 'at', time: '2100-01-31T00:00:00.000Z' } });
    assert.equal(at.expiresAt, '2100-01-31T00:00:00.000000Z');
    assert.equal((await createKey(world.db, details)).expiresAt, null);
  });

  for (const [clock, jumps] of [
    ['is right', []],
    ['is set back', [-HOUR_US]],
    ['is set ahead and back', [HOUR_US, 0n]],
  ] as const) {
    it(`a cached key is accepted until it expires and refused from then on while the clock of the server ${clock}`, async () => {
      const { key, prefix } = await newCachedKey(LIFE_MS);
      for (const jump of jumps) {
        ahead = jump;
        assert.equal(await status(key), 200);
      }
      assert.ok((await assertEndsInTime(world.db, prefix, () => status(key))) > 0);
    });
  }

  it('a cached key costs one query when the clock of the server is set ahead', async () => {
    const { key } = await newCachedKey(60_000);
    ahead = 2n * HOUR_US;
    assert.deepEqual([await queriesToServe(key), await queriesToServe(key)], [1, 0]);
  });

  it('an expiry that is brought forward applies from the next request', async () => {
    const { key, prefix } = await newCachedKey(60_000);
    await pastTriggers(world.db, 'api_keys', (db) => expireIn(db, prefix, 0));
    await renewEpoch(link, new Fence());
    assert.equal(await status(key), 401);
  });

  it('an expiry that is changed in plain SQL is announced, and a key whose expiry is put off is accepted again', async () => {
    const { key, prefix } = await newCachedKey(60_000);
    await expireIn(world.db, prefix, 0);
    await eventually('the key is refused', async () => (await status(key)) === 401);
    await expireIn(world.db, prefix, 60_000);
    assert.equal(await status(key), 200);
  });
});
