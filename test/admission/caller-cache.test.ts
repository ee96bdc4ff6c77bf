import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { createDeveloper } from '../../src/developers/developers.js';
import { admitFromCache } from '../../src/admission/admit-from-cache.js';
import { Fence } from '../../src/platform/postgres/fence.js';
import { CallerCache } from '../../src/admission/caller-cache.js';
import type { Caller } from '../../src/admission/callers.js';
import { EPOCH_KEY, readOrCreateEpoch, renewEpoch } from '../../src/admission/epoch.js';
import { generateApiKey } from '../../src/keys/api-key.js';
import { createKey } from '../../src/keys/keys.js';
import { revokeKey } from '../../src/keys/revoke.js';
import { callerLoader, type LoadCaller } from '../../src/admission/caller-loader.js';
import { RedisLimiter } from '../../src/admission/charge/redis-limiter.js';
import { RedisLink } from '../../src/platform/redis/link.js';
import { openTestDatabase, type OpenTestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { hashOf } from '../support/keys/key-hash.js';
import { startRedis, type TestRedis } from '../support/redis.js';

const CALLER: Caller = {
  keyId: 1,
  keyPrefix: 'svc_00000000',
  developerId: 1,
  projectName: 'P',
  attributionRequired: false,
  plan: { id: 'free', name: 'Free', requestsPerMinute: 60, requestsPerDay: 100, commercialUse: false },
  expiresAt: Infinity,
};

describe('the cache of callers', () => {
  let cache: CallerCache;

  beforeEach(() => {
    cache = new CallerCache();
    cache.open();
  });

  function keep(hash: string, epoch: string): void {
    cache.keep(cache.beginRead(epoch) ?? assert.fail('the cache is closed'), hash, CALLER);
  }

  it('knows a record with the epoch it was read under', () => {
    keep('a', 'first');
    assert.deepEqual(cache.get('a'), { caller: CALLER, epoch: 'first' });
    assert.equal(cache.get('b'), undefined);
  });

  it('finds a record by its whole hash', () => {
    keep('ab', 'first');
    assert.equal(cache.get('a'), undefined);
    assert.equal(cache.get('ac'), undefined);
  });

  it('keeps a copy, through and through', () => {
    keep('a', 'first');
    assert.deepEqual(cache.get('a')?.caller, CALLER);
    assert.notEqual(cache.get('a')?.caller, CALLER);
    assert.notEqual(cache.get('a')?.caller.plan, CALLER.plan);
  });

  it('drops what was read under another epoch', () => {
    keep('a', 'first');
    keep('b', 'second');
    assert.equal(cache.get('a'), undefined);
    assert.deepEqual(cache.get('b'), { caller: CALLER, epoch: 'second' });
  });

  it('ends one epoch and no other', () => {
    keep('a', 'first');
    cache.end('second', 'third');
    assert.notEqual(cache.get('a'), undefined);
    cache.end('first', 'second');
    assert.deepEqual([cache.get('a'), cache.epoch], [undefined, 'second']);
    cache.end('second', '');
    assert.equal(cache.epoch, undefined);
  });

  for (const [what, happens] of [
    ['a change was announced', () => cache.drop()],
    ['the announcements were lost', () => cache.close()],
    [
      'the announcements were lost and came back',
      () => {
        cache.close();
        cache.open();
      },
    ],
    ['another epoch began', () => cache.beginRead('second')],
    ['another epoch began, and the first came back', () => [cache.beginRead('second'), cache.beginRead('first')]],
    ['the epoch ended', () => cache.end('first', '')],
    ['the epoch ended, and another one is known', () => cache.end('first', 'second')],
  ] as const) {
    it(`does not keep a record if ${what} while it was read`, () => {
      const generation = cache.beginRead('first') ?? assert.fail('the cache is closed');
      happens();
      cache.keep(generation, 'a', CALLER);
      assert.equal(cache.get('a'), undefined);
    });
  }

  it('keeps nothing until the database is heard', () => {
    const closed = new CallerCache();
    assert.equal(closed.beginRead('first'), undefined);
    closed.open();
    assert.notEqual(closed.beginRead('first'), undefined);
  });
});

describe('admission while things change', () => {
  let database: OpenTestDatabase;
  let redis: TestRedis;
  let link: RedisLink;
  let developerId: number;
  /** What happens right after the database was read. */
  let afterRead: () => Promise<unknown>;
  let reads: number;

  before(async () => {
    database = await openTestDatabase();
    redis = await startRedis();
    link = new RedisLink(redis.address, () => undefined);
    await link.settled();
    developerId = (await createDeveloper(database.db, { projectName: 'P', attributionRequired: false })).id;
  });

  after(async () => {
    link.close();
    await redis.stop();
    await database.close();
  });

  beforeEach(() => {
    afterRead = () => Promise.resolve();
    reads = 0;
  });

  function open(cache: CallerCache): (key: string) => Promise<boolean> {
    const load = callerLoader(database.db, 1);
    const loadCaller: LoadCaller = async (hash) => {
      reads += 1;
      const found = await load(hash);
      await afterRead();
      return found;
    };
    const admit = admitFromCache({
      fence: new Fence(),
      loadCaller,
      redis: link,
      limiter: new RedisLimiter(link),
      cache,
    });
    return async (key) => (await admit(hashOf(key))).kind === 'known';
  }

  for (const [how, announced] of [
    ['by command', false],
    ['in plain SQL', true],
  ] as const) {
    it(`refuses a key that is revoked ${how} between reading it and keeping it`, async () => {
      const cache = new CallerCache();
      cache.open();
      const isAdmitted = open(cache);
      await renewEpoch(link, new Fence());
      const { key, prefix } = await createKey(database.db, { developerId, planId: 'free' });
      afterRead = async () => {
        afterRead = () => Promise.resolve();
        await revokeKey(database.db, prefix);
        if (announced) cache.drop();
        else await renewEpoch(link, new Fence());
      };
      assert.equal(await isAdmitted(key), true);
      assert.equal(await isAdmitted(key), false);
    });
  }

  it('refuses a key that is revoked while another request with it waits for the first', async () => {
    const cache = new CallerCache();
    cache.open();
    const isAdmitted = open(cache);
    await renewEpoch(link, new Fence());
    const { key, prefix } = await createKey(database.db, { developerId, planId: 'free' });
    let second: Promise<boolean> | undefined;
    afterRead = async () => {
      afterRead = () => Promise.resolve();
      await revokeKey(database.db, prefix);
      await renewEpoch(link, new Fence());
      second = isAdmitted(key);
    };
    assert.equal(await isAdmitted(key), true);
    assert.equal(await second, false);
    assert.equal(reads, 2);
  });

  it('refuses a key that is revoked after it was read under an epoch that had ended', async () => {
    const cache = new CallerCache();
    cache.open();
    const isAdmitted = open(cache);
    const [first, second] = [
      await createKey(database.db, { developerId, planId: 'free' }),
      await createKey(database.db, { developerId, planId: 'free' }),
    ];
    await renewEpoch(link, new Fence());
    assert.equal(await isAdmitted(first.key), true);
    await renewEpoch(link, new Fence());
    assert.equal(await isAdmitted(second.key), true);
    // That the epoch had ended was found out at once.
    assert.deepEqual([cache.epoch, cache.size], [await readOrCreateEpoch(link, new Fence()), 0]);
    assert.equal(await isAdmitted(second.key), true);
    await revokeKey(database.db, second.prefix);
    await renewEpoch(link, new Fence());
    assert.equal(await isAdmitted(second.key), false);
    assert.equal(await isAdmitted(first.key), true);
  });

  it('does not read the epoch for a key that does not exist, nor while nothing can be kept', async () => {
    const cache = new CallerCache();
    const isAdmitted = open(cache);
    await renewEpoch(link, new Fence());
    const { key } = await createKey(database.db, { developerId, planId: 'free' });
    // Charges do not go through here.
    const evals = mock.method(link.client, 'eval');
    try {
      assert.equal(await isAdmitted(key), true);
      assert.equal(evals.mock.callCount(), 0);
      cache.open();
      assert.equal(await isAdmitted(key), true);
      assert.equal(evals.mock.callCount(), 1);
      assert.equal(await isAdmitted(generateApiKey().key), false);
      assert.equal(evals.mock.callCount(), 1);
    } finally {
      evals.mock.restore();
    }
  });

  it('reads the epoch once for requests that need it at the same time', async () => {
    const cache = new CallerCache();
    cache.open();
    const isAdmitted = open(cache);
    await renewEpoch(link, new Fence());
    const { key } = await createKey(database.db, { developerId, planId: 'free' });
    const evals = mock.method(link.client, 'eval');
    try {
      assert.deepEqual(await Promise.all(Array.from({ length: 5 }, () => isAdmitted(key))), Array(5).fill(true));
      assert.deepEqual([evals.mock.callCount(), reads], [1, 1]);
    } finally {
      evals.mock.restore();
    }
  });

  it('keeps what is read anew where a change was announced while requests waited for a reading', async () => {
    const cache = new CallerCache();
    cache.open();
    const isAdmitted = open(cache);
    await renewEpoch(link, new Fence());
    const { key } = await createKey(database.db, { developerId, planId: 'free' });
    afterRead = () => {
      afterRead = () => Promise.resolve();
      cache.drop();
      return Promise.resolve();
    };
    assert.deepEqual(await Promise.all(Array.from({ length: 5 }, () => isAdmitted(key))), Array(5).fill(true));
    assert.deepEqual([cache.size, cache.epoch], [1, await readOrCreateEpoch(link, new Fence())]);
  });

  it('shares a reading that takes longer than a request may wait for Redis', async () => {
    const cache = new CallerCache();
    cache.open();
    const isAdmitted = open(cache);
    await renewEpoch(link, new Fence());
    const { key } = await createKey(database.db, { developerId, planId: 'free' });
    afterRead = () => delay(500);
    assert.deepEqual(await Promise.all(Array.from({ length: 5 }, () => isAdmitted(key))), Array(5).fill(true));
    assert.equal(reads, 1);
    assert.deepEqual(cache.lookupCounts, { hit: 4, miss: 1, stale: 0 });
  });

  it('waits for no reading of which nothing will be kept', async () => {
    const isAdmitted = open(new CallerCache());
    const { key } = await createKey(database.db, { developerId, planId: 'free' });
    // Each ends when all have begun.
    afterRead = () => eventually('all read at once', () => reads === 3);
    assert.deepEqual(await Promise.all([1, 2, 3].map(() => isAdmitted(key))), [true, true, true]);
  });

  it('goes on where the reading of another request failed', async () => {
    const cache = new CallerCache();
    cache.open();
    const isAdmitted = open(cache);
    await renewEpoch(link, new Fence());
    const { key } = await createKey(database.db, { developerId, planId: 'free' });
    let second: Promise<boolean> | undefined;
    afterRead = () => {
      afterRead = () => Promise.resolve();
      second = isAdmitted(key);
      return Promise.reject(new Error('lost'));
    };
    await assert.rejects(isAdmitted(key), { message: 'lost' });
    assert.equal(await second, true);
  });

  it('takes an empty epoch for none, and remembers nothing under it', async () => {
    const cache = new CallerCache();
    cache.open();
    const isAdmitted = open(cache);
    await link.run((client) => client.set(EPOCH_KEY, ''));
    const { key, prefix } = await createKey(database.db, { developerId, planId: 'free' });
    assert.equal(await isAdmitted(key), true);
    assert.match((await readOrCreateEpoch(link, new Fence())) ?? '', /^0\/0\/[-\da-f]{36}$/);
    assert.equal(await isAdmitted(key), true);
    await revokeKey(database.db, prefix);
    await renewEpoch(link, new Fence());
    assert.equal(await isAdmitted(key), false);
  });

  it('begins one epoch, however many requests find none at the same time', async () => {
    await link.run((client) => client.del(EPOCH_KEY));
    const [first, ...others] = await Promise.all([1, 2, 3].map(() => readOrCreateEpoch(link, new Fence())));
    const epoch = await readOrCreateEpoch(link, new Fence());
    assert.notEqual(epoch, undefined);
    assert.deepEqual([first, ...others], [undefined, epoch, epoch]);
  });
});
