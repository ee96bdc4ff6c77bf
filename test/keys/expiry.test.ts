import assert from 'node:assert/strict';
import { createKey, type CreatedKey } from '../../src/keys/keys.js';
import { systemClock } from '../../src/platform/time/micros.js';
import { eventually } from '../support/eventually.js';
import { assertEndsInTime, expireIn, whileAlive } from '../support/keys/expiry.js';
import { testWorld } from '../support/world.js';

const HOUR_US = 3_600_000_000n;

describe('the expiry of a key', () => {
  /** How far the clock of the server is set ahead, in microseconds. */
  let ahead = 0n;
  const world = testWorld({ redis: true, service: { now: () => systemClock() + ahead } });

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

  /** @returns a key that expires in some seconds, and is cached with that expiry */
  async function newCachedKey(seconds: number): Promise<CreatedKey> {
    const created = await world.newKey();
    await expireIn(world.db, created.prefix, seconds * 1_000);
    for (let queries = 1; queries > 0;) queries = await queriesToServe(created.key);
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

  it('a cached key is accepted until it expires and refused from then on, wherever the clock of the server is set', async () => {
    const { key, prefix } = await whileAlive(async (seconds) => {
      const created = await newCachedKey(seconds);
      for (const jump of [-HOUR_US, HOUR_US, -HOUR_US]) {
        ahead = jump;
        assert.equal(await status(created.key), 200);
      }
      return created;
    });
    await assertEndsInTime(world.db, prefix, () => status(key));
  });

  it('a cached key costs queries when the clock of the server is set ahead, until the next look at the announcements', async () => {
    const { key } = await newCachedKey(3_600);
    ahead = 2n * HOUR_US;
    assert.equal(await queriesToServe(key), 1);
    await eventually('the key is cached again', async () => (await queriesToServe(key)) === 0);
  });

  it('an expiry that is changed in plain SQL is announced, and a key whose expiry is put off is accepted again', async () => {
    const { key, prefix } = await newCachedKey(3_600);
    await expireIn(world.db, prefix, 0);
    await eventually('the key is refused', async () => (await status(key)) === 401);
    await expireIn(world.db, prefix, 3_600_000);
    assert.equal(await status(key), 200);
  });
});
