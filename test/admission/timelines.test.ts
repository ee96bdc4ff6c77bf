import assert from 'node:assert/strict';
import { Redis } from 'ioredis';
import {
  createVersion,
  observeTimeline,
  publishTimeline,
  renewVersions,
  TIMELINE_KEY,
  versionKey,
} from '../../src/admission/versions.js';
import { Fence } from '../../src/platform/postgres/fence.js';
import { RedisLink } from '../../src/platform/redis/link.js';
import { testWorld } from '../support/world.js';

const SYSTEM = '7000000000000000001';
const DEVELOPER = 1;

/** Older and newer: as texts, they are in another order. */
const PAIRS = [
  [9, 10],
  [10, 11],
  [99, 100],
  [2, 10],
] as const;

/** @returns the fence of a process that has connected to this timeline */
function fenceAt(timeline: number, system = SYSTEM): Fence {
  const fence = new Fence();
  fence.accept({ is_standby: false, is_read_only: false, system, timeline });
  return fence;
}

describe('timelines of the database', () => {
  const world = testWorld({ redis: true });
  let redis: RedisLink;
  let direct: Redis;

  before(async () => {
    redis = new RedisLink(world.redis.address, () => undefined);
    world.defer(() => redis.close());
    await redis.settled();
    direct = new Redis(world.redis.url);
    world.defer(() => direct.disconnect());
  });

  beforeEach(() => direct.flushall());

  const published = (): Promise<string | null> => direct.get(TIMELINE_KEY);
  const version = async (): Promise<string> => (await direct.get(versionKey(DEVELOPER))) ?? assert.fail();

  for (const [older, newer] of PAIRS) {
    it(`timeline ${older} is replaced by timeline ${newer}, never the reverse, and whoever has the older one finds out`, async () => {
      await publishTimeline(redis, fenceAt(older));
      assert.equal(await published(), `${SYSTEM}/${older}`);
      await createVersion(redis, fenceAt(older), DEVELOPER);
      await publishTimeline(redis, fenceAt(newer));
      await renewVersions(redis, fenceAt(newer), [DEVELOPER]);
      const renewed = await version();
      assert.ok(renewed.startsWith(`${SYSTEM}/${newer}/`), renewed);

      for (const act of [
        (fence: Fence) => publishTimeline(redis, fence),
        (fence: Fence) => renewVersions(redis, fence, [DEVELOPER]),
        async (fence: Fence) => observeTimeline(fence, renewed),
      ]) {
        const fence = fenceAt(older);
        await act(fence);
        assert.equal(fence.newest?.number, newer);
      }
      assert.deepEqual([await published(), await version()], [`${SYSTEM}/${newer}`, renewed]);

      const fence = fenceAt(newer);
      observeTimeline(fence, `${SYSTEM}/${older}/abc`);
      assert.equal(fence.newest?.number, newer);
      assert.throws(() => fence.accept({ is_standby: false, is_read_only: false, system: SYSTEM, timeline: older }), {
        name: 'DatabaseSuperseded',
      });
    });
  }

  it('a timeline of another system replaces any, since the two have no order', async () => {
    await publishTimeline(redis, fenceAt(10));
    await publishTimeline(redis, fenceAt(9, '8'));
    assert.equal(await published(), '8/9');
  });
});
