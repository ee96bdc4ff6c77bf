import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { eventually } from '../support/eventually.js';
import { ask, newPlan, tally, type Answer } from '../support/deployments/deployment.js';
import { timesLogged, type ServerProcess } from '../support/program.js';
import { testWorld, type World } from '../support/world.js';

/** How often a server may lose Redis in this suite, because the machine is too slow, and a test is tried again. */
const RETRIES = 2;

describe('limits over three server processes', () => {
  const world = testWorld({ redis: true });
  let servers: ServerProcess[];
  let redis: Redis;
  let retries = 0;

  before(async () => {
    servers = await Promise.all([world.startServer(), world.startServer(), world.startServer()]);
    redis = new Redis(world.redis.url);
    world.defer(() => redis.disconnect());
    // Programs that have just started are slow, which is not tested here.
    await storm(90, (await world.newKey()).key);
  });

  /** Sends requests to all servers at once, with each key in turn. */
  function storm(requests: number, ...keys: string[]): Promise<Answer[]> {
    return Promise.all(
      Array.from({ length: requests }, (_, i) =>
        ask(servers[i % servers.length]?.url ?? '', keys[Math.floor(i / servers.length) % keys.length] ?? ''),
      ),
    );
  }

  function logged(message: string): number {
    return servers.reduce((sum, server) => sum + timesLogged(server, message), 0);
  }

  /** A test of what holds while Redis is up. If a server loses it for a moment, it rightly counts by itself. */
  function exactly(title: string, attempt: () => Promise<void>): void {
    it(title, async () => {
      for (;;) {
        await eventually('every server has Redis', () => logged('redis lost') === logged('redis back'));
        const losses = logged('redis lost');
        try {
          await attempt();
          return;
        } catch (error) {
          if (logged('redis lost') === losses || ++retries > RETRIES) throw error;
        }
      }
    });
  }

  async function newPlanKey(...plan: [id: string, perMinute: number, perDay: number]): ReturnType<World['newKey']> {
    return world.newKey({ planId: await newPlan(world.db, ...plan) });
  }

  function print(what: string, answers: readonly Answer[]): void {
    console.log(`      ${what}: ${JSON.stringify(tally(answers))}`);
  }

  for (const [quota, perMinute, perDay, position] of [
    ['minute', 100, 100_000, 0],
    ['day', 100_000, 100, 1],
  ] as const) {
    exactly(`three servers serve exactly 100 of 300 concurrent requests on a plan of 100 a ${quota}`, async () => {
      const { key } = await newPlanKey(quota, perMinute, perDay);
      const answers = await storm(300, key);
      print(`100 a ${quota}, 300 at once`, answers);
      assert.deepEqual(tally(answers), { 200: 100, 429: 200 });
      // Each number that remains was reported once over all servers.
      const places = answers.filter(({ status }) => status === 200).map(({ remaining }) => remaining[position]);
      assert.deepEqual(
        places.toSorted((a, b) => Number(b) - Number(a)),
        Array.from({ length: 100 }, (_, i) => 99 - i),
      );
      // A refused request is not charged to the other quota.
      for (const { remaining } of answers.filter(({ status }) => status === 429)) {
        assert.deepEqual(remaining, position === 0 ? [0, 99_900] : [99_900, 0]);
      }
    });
  }

  exactly('three servers count the keys of one developer together, and developers separately', async () => {
    const one = await newPlanKey('together', 100, 100_000);
    const second = await world.newKey({ developerId: one.developerId, planId: 'together' });
    const other = await world.newKey({ planId: 'together' });
    const answers = await storm(240, one.key, second.key);
    print('two keys of one developer, 240 at once', answers);
    assert.deepEqual(tally(answers), { 200: 100, 429: 140 });
    const others = await storm(120, other.key);
    print('another developer, 120 at once', others);
    assert.deepEqual(tally(others), { 200: 100, 429: 20 });
  });

  exactly('a limit holds at the edge of its window, and a client that waited is served', async () => {
    const { key, developerId } = await newPlanKey('edge', 100, 100_000);
    assert.deepEqual(tally(await storm(130, key)), { 200: 100, 429: 30 });
    // The window is about to end while requests keep arriving.
    await redis.pexpire(`{catalog}:count:minute:${developerId}:edge`, 600);
    const answers: Answer[] = [];
    await eventually('the new window is used up as well', async () => {
      answers.push(...(await storm(60, key)));
      return tally(answers)[200] === 100 && answers.at(-1)?.status === 429;
    });
    answers.push(...(await storm(60, key)));
    print('over the edge of a window', answers);
    assert.equal(tally(answers)[200], 100);

    await redis.pexpire(`{catalog}:count:minute:${developerId}:edge`, 700);
    const [refused] = await storm(1, key);
    assert.deepEqual([refused?.status, refused?.retryAfter], [429, 1]);
    await delay(1_000); // as Retry-After requires
    const [served] = await storm(1, key);
    assert.deepEqual([served?.status, served?.remaining[0]], [200, 99]);
  });

  exactly('a limit holds through the restart of a server', async () => {
    const { key } = await newPlanKey('restart', 100, 100_000);
    const before = await storm(30, key);
    await servers[0]?.stop('SIGKILL');
    servers[0] = await world.startServer();
    const after = await storm(90, key);
    print('through a restart', [...before, ...after]);
    assert.deepEqual(tally([...before, ...after]), { 200: 100, 429: 20 });
  });
});
