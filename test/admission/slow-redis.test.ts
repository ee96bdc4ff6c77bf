import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { admitFromCache } from '../../src/admission/admit-from-cache.js';
import { Fence } from '../../src/platform/postgres/fence.js';
import { CallerCache } from '../../src/admission/caller-cache.js';
import type { Caller } from '../../src/admission/callers.js';
import { EPOCH_KEY, readOrCreateEpoch, renewEpoch } from '../../src/admission/epoch.js';
import { RedisLimiter, type ConditionalOutcome } from '../../src/admission/charge/redis-limiter.js';
import type { QuotaRequest } from '../../src/admission/charge/limiter.js';
import { generateApiKey } from '../../src/keys/api-key.js';
import { RedisLink } from '../../src/platform/redis/link.js';
import { hashOf } from '../support/keys/key-hash.js';
import { TcpProxy } from '../support/proxies/tcp-proxy.js';
import { startRedis, type TestRedis } from '../support/redis.js';

/** Of each reply of Redis, in milliseconds. Four commands take longer than a request may. */
const DELAY_MS = 235;

/** The same for requests that wait for one another. They wait for three commands, the second of which is cut short. */
const LONG_DELAY_MS = 320;

/** Between requests that come one after the other, in milliseconds. */
const PAUSE_MS = 40;

/** Bound on one command, in milliseconds: enough on a busy machine. */
const COMMAND_TIMEOUT_MS = 400;

/** The deadline of a request, in milliseconds. */
const DEADLINE_MS = 900;

const CALLER: Caller = {
  keyId: 1,
  keyPrefix: 'svc_00000000',
  developerId: 1,
  projectName: 'Film club',
  attributionRequired: false,
  plan: { id: 'p', name: 'P', requestsPerMinute: 60, requestsPerDay: 10_000, commercialUse: false },
  expiresAt: Infinity,
};

describe('admission where Redis is slow', () => {
  let redis: TestRedis;
  let network: TcpProxy;
  let direct: RedisLink;
  let slow: RedisLink;

  before(async () => {
    redis = await startRedis();
    network = await TcpProxy.start(redis.url);
    direct = new RedisLink(redis.address, () => undefined);
    slow = new RedisLink({ url: network.url }, () => undefined, COMMAND_TIMEOUT_MS);
    await Promise.all([direct.settled(), slow.settled()]);
  });

  after(async () => {
    slow.close();
    direct.close();
    await network.stop();
    await redis.stop();
  });

  it('takes no longer than a request may, also where each epoch ends before its record is used', async () => {
    const hash = hashOf(generateApiKey().key);
    const cache = new CallerCache();
    const keepCaller = async (): Promise<void> => {
      const epoch = (await readOrCreateEpoch(direct, new Fence())) ?? assert.fail('no epoch');
      cache.keep(cache.beginRead(epoch) ?? assert.fail('the cache is closed'), hash, CALLER);
    };
    let charges = 0;
    /** Each time another server ends the epoch just before, and at first another request has read the caller anew. */
    class UnluckyLimiter extends RedisLimiter {
      override async chargeIf(epoch: string, request: QuotaRequest, until: number): Promise<ConditionalOutcome> {
        charges += 1;
        await renewEpoch(direct, new Fence());
        const outcome = await super.chargeIf(epoch, request, until);
        if (charges === 1) await keepCaller();
        return outcome;
      }
    }
    cache.open();
    await renewEpoch(direct, new Fence());
    await keepCaller();
    const admit = admitFromCache({
      fence: new Fence(),
      redis: slow,
      cache,
      limiter: new UnluckyLimiter(slow),
      loadCaller: async () => CALLER,
    });
    network.delayMs = DELAY_MS;
    const startedAt = performance.now();
    const { kind } = await admit(hash);
    const took = performance.now() - startedAt;
    assert.deepEqual([kind, charges], ['known', 2]);
    assert.ok(took < DEADLINE_MS, `${took} ms`);
  });

  it('takes no longer where no epoch is known, and Redis has none', async () => {
    const cache = new CallerCache();
    cache.open();
    await direct.run((client) => client.del(EPOCH_KEY));
    const admit = admitFromCache({
      fence: new Fence(),
      redis: slow,
      cache,
      limiter: new RedisLimiter(slow),
      loadCaller: async () => CALLER,
    });
    network.delayMs = LONG_DELAY_MS;
    const startedAt = performance.now();
    const { kind } = await admit(hashOf(generateApiKey().key));
    const took = performance.now() - startedAt;
    assert.equal(kind, 'known');
    assert.ok(took < DEADLINE_MS, `${took} ms`);
  });

  it('takes no longer where requests wait for the reading of another one, and each epoch ends meanwhile', async () => {
    network.delayMs = 0;
    const hash = hashOf(generateApiKey().key);
    const cache = new CallerCache();
    /** Each time another server ends the epoch just before. */
    class UnluckyLimiter extends RedisLimiter {
      override async chargeIf(epoch: string, request: QuotaRequest, until: number): Promise<ConditionalOutcome> {
        await renewEpoch(direct, new Fence());
        return super.chargeIf(epoch, request, until);
      }
    }
    cache.open();
    await renewEpoch(direct, new Fence());
    const limiter = new UnluckyLimiter(slow);
    const admit = admitFromCache({ fence: new Fence(), redis: slow, cache, limiter, loadCaller: async () => CALLER });
    assert.equal((await admit(hash)).kind, 'known');
    network.delayMs = LONG_DELAY_MS;
    const took = await Promise.all(
      Array.from({ length: 15 }, async (_, i) => {
        await delay(i * PAUSE_MS);
        const startedAt = performance.now();
        assert.equal((await admit(hash)).kind, 'known');
        return performance.now() - startedAt;
      }),
    );
    assert.ok(Math.max(...took) < DEADLINE_MS, took.join(' ms, '));
  });
});
