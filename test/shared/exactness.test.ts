import assert from 'node:assert/strict';
import { Redis } from 'ioredis';
import { ask, tally, type Answer } from '../support/deployments/ask.js';
import { newPlan, UNLIMITED } from '../support/keys/new-key.js';
import { eventually } from '../support/eventually.js';
import type { TestService } from '../support/service.js';
import { testWorld } from '../support/world.js';

const LIMIT = 100;

describe('limits over three servers', () => {
  const world = testWorld({ redis: true });
  let servers: TestService[];
  let redis: Redis;

  before(async () => {
    servers = await Promise.all([world.startService(), world.startService(), world.startService()]);
    redis = new Redis(world.redis.url);
    world.defer(() => redis.disconnect());
  });

  /** Sends requests to all servers at once, with each key in turn. */
  function storm(requests: number, ...keys: string[]): Promise<Answer[]> {
    return Promise.all(
      Array.from({ length: requests }, (_, i) =>
        ask(servers[i % servers.length]?.url ?? '', keys[Math.floor(i / servers.length) % keys.length] ?? ''),
      ),
    );
  }

  for (const [quota, perMinute, perDay, position] of [
    ['minute', LIMIT, UNLIMITED, 0],
    ['day', UNLIMITED, LIMIT, 1],
  ] as const) {
    it(`three servers serve exactly ${LIMIT} requests of a developer on a plan of ${LIMIT} a ${quota}, also when one is replaced`, async () => {
      const planId = await newPlan(world.db, quota, perMinute, perDay);
      const [one, other] = [await world.newKey({ planId }), await world.newKey({ planId })];
      const second = await world.newKey({ planId, developerId: one.developerId });
      const answers = await storm(60, one.key, second.key);
      await servers[0]?.stop();
      servers[0] = await world.startService();
      answers.push(...(await storm(240, one.key, second.key)));
      assert.deepEqual(tally(answers), { 200: LIMIT, 429: 200 });
      // Each number that remains was reported once over all servers.
      const places = answers.filter(({ status }) => status === 200).map(({ remaining }) => remaining[position]);
      assert.deepEqual(
        places.toSorted((a, b) => Number(b) - Number(a)),
        Array.from({ length: LIMIT }, (_, i) => LIMIT - 1 - i),
      );
      // A refused request is not charged to the other quota.
      for (const { remaining } of answers.filter(({ status }) => status === 429)) {
        assert.deepEqual(remaining, position === 0 ? [0, UNLIMITED - LIMIT] : [UNLIMITED - LIMIT, 0]);
      }
      assert.deepEqual(tally(await storm(LIMIT + 20, other.key)), { 200: LIMIT, 429: 20 });
    });
  }

  it('a limit holds at the edge of its window', async () => {
    const { key, developerId } = await world.newKey({ planId: await newPlan(world.db, 'edge', LIMIT, UNLIMITED) });
    assert.deepEqual(tally(await storm(LIMIT + 30, key)), { 200: LIMIT, 429: 30 });
    // The window is about to end while requests keep arriving.
    await redis.pexpire(`catalog:{${developerId}}:minute:edge`, 600);
    const answers: Answer[] = [];
    await eventually('the new window is used up as well', async () => {
      answers.push(...(await storm(60, key)));
      return tally(answers)[200] === LIMIT && answers.at(-1)?.status === 429;
    });
    answers.push(...(await storm(60, key)));
    assert.equal(tally(answers)[200], LIMIT);
  });
});
