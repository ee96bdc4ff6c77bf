import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { EPOCH_KEY } from '../../src/admission/epoch.js';
import { revokeKey } from '../../src/keys/revoke.js';
import { openTestDatabase, type OpenTestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { pastTriggers } from '../support/postgres/past-triggers.js';
import { runProgram, startServer, timesLogged, type ServerProcess } from '../support/program.js';
import { startRedisSentinel, type TestRedisSentinel } from '../support/redis/redis-sentinel.js';
import { ask, newKey, newPlan, tally, type Answer } from '../support/deployments/deployment.js';

/** Requests that are under way at any moment, and the pause of each sender, in milliseconds. */
const SENDERS = 8;
const PAUSE_MS = 5;

/** Bound on an answer, in milliseconds: that on a request, and what a busy machine adds. */
const BOUND_MS = 2_000;

/** What was counted under load. */
interface Counts {
  served: number;
  refused: number;
  unavailable: number;
  wrong: number;
  longestMs: number;
}

describe('two server processes with a Redis that fails over through a Sentinel', () => {
  let database: OpenTestDatabase;
  let redis: TestRedisSentinel;
  let environment: Record<string, string>;
  let servers: ServerProcess[];
  let addresses = 0;

  beforeEach(async () => {
    [database, redis] = await Promise.all([openTestDatabase(), startRedisSentinel()]);
    environment = { DATABASE_URL: database.url, REDIS_URL: redis.url, TRUST_PROXY: '1' };
    servers = await Promise.all([startServer(environment), startServer(environment)]);
    await newPlan(database.db, 'wide', 1_000_000, 1_000_000);
  });

  afterEach(async () => {
    await Promise.all(servers.map((server) => server.stop()));
    await redis.stop();
    await database.close();
  });

  /** Asks all servers in turn, from an address of its own, so that refusals are not limited. */
  function askAll(key: string, requests = 10): Promise<Answer[]> {
    addresses += 1;
    return Promise.all(
      Array.from({ length: requests }, (_, i) =>
        ask(servers[i % servers.length]?.url ?? '', key, `192.0.2.${addresses}`),
      ),
    );
  }

  function said(message: string): number[] {
    return servers.map((server) => timesLogged(server, message));
  }

  /** Sends requests without a pause for anybody: with a valid key, and now and then with one revoked before. */
  function load(valid: string, revoked: string): { stop(): Promise<Counts> } {
    const counts: Counts = { served: 0, refused: 0, unavailable: 0, wrong: 0, longestMs: 0 };
    let isOver = false;
    const senders = Array.from({ length: SENDERS }, async (_, sender) => {
      for (let i = sender; !isOver; i += 1) {
        const isRevoked = i % 10 === 0;
        const startedAt = performance.now();
        const { status } = await ask(
          servers[i % servers.length]?.url ?? '',
          isRevoked ? revoked : valid,
          `198.51.100.${i % 250}`,
        );
        counts.longestMs = Math.max(counts.longestMs, performance.now() - startedAt);
        if (status === 503) counts.unavailable += 1;
        else if (status === 200 && !isRevoked) counts.served += 1;
        else if ((status === 401 || status === 429) && isRevoked) counts.refused += 1;
        else counts.wrong += 1;
        await delay(PAUSE_MS);
      }
    });
    return {
      stop: async () => {
        isOver = true;
        await Promise.all(senders);
        return counts;
      },
    };
  }

  it('serve all the while, refuse what was revoked meanwhile, and share limits again', async () => {
    const [valid, before, during] = await Promise.all(
      ['wide', 'wide', 'wide'].map((plan) => newKey(database.db, plan)),
    );
    assert.ok(valid && before && during);
    assert.deepEqual(tally([...(await askAll(before.key)), ...(await askAll(during.key))]), { 200: 20 });
    assert.deepEqual(await runProgram(['keys', 'revoke', before.prefix], environment), {
      code: 0,
      stdout: `Revoked ${before.prefix}. It is refused from the next request on, permanently.\n`,
      stderr: '',
    });
    const running = load(valid.key, before.key);
    await redis.master.kill();
    await eventually('both servers have lost Redis', () => said('redis lost').every((times) => times === 1));
    const revoked = await runProgram(['keys', 'revoke', during.prefix], environment);
    assert.equal(revoked.code, 0);
    const meanwhile = await askAll(during.key);
    await eventually('both servers have the new master', () => said('redis back').every((times) => times === 1));
    const afterwards = await askAll(during.key);
    const counts = await running.stop();
    console.log(
      `      failover under load: ${counts.served} served, ${counts.refused} refused, ${counts.unavailable} times 503, ` +
        `${counts.wrong} wrong; longest ${counts.longestMs.toFixed(0)} ms`,
    );
    assert.deepEqual([tally(meanwhile), tally(afterwards)], [{ 401: 10 }, { 401: 10 }]);
    assert.deepEqual([counts.wrong, counts.unavailable], [0, 0]);
    assert.ok(counts.served > 0 && counts.refused > 0);
    assert.ok(counts.longestMs < BOUND_MS, `${counts.longestMs} ms`);

    const limited = await newKey(database.db, await newPlan(database.db, 'limited', 100, 100_000));
    assert.deepEqual(tally(await askAll(limited.key, 300)), { 200: 100, 429: 200 });
    const usage = await runProgram(['usage', '--developer', String(limited.developerId), '--json'], environment);
    const { plans } = JSON.parse(usage.stdout) as { plans: [{ minute: { used: number } }] };
    assert.deepEqual([usage.stderr, plans[0].minute.used], ['', 100]);
    assert.deepEqual(
      [said('redis lost'), said('redis back')],
      [
        [1, 1],
        [1, 1],
      ],
    );
  });

  it('refuse a revoked key at once also after a failover that leaves the old master alive', async () => {
    const { key, prefix } = await newKey(database.db, 'wide');
    assert.deepEqual(tally(await askAll(key, 20)), { 200: 20 });
    await redis.failOver();
    // The Sentinel tells the old one some ten seconds later; the servers do not wait for that.
    await eventually('both servers have the new master', () => said('redis back').every((times) => times === 1), 6_000);
    assert.deepEqual(tally(await askAll(key, 20)), { 200: 20 });
    assert.deepEqual(
      await runProgram(['keys', 'revoke', prefix], environment).then(({ code, stderr }) => ({ code, stderr })),
      { code: 0, stderr: '' },
    );
    assert.deepEqual(tally(await askAll(key)), { 401: 10 });
  });

  it('refuse a revoked key although the new master has not heard of the revocation', async () => {
    const { key, prefix } = await newKey(database.db, 'wide');
    assert.deepEqual(tally(await askAll(key, 20)), { 200: 20 });
    const master = new Redis(redis.master.url);
    try {
      // From here on the replica keeps the epoch that the servers have the key under.
      await master.config('SET', 'requirepass', 'none of its replicas knows it');
      await master.client('KILL', 'TYPE', 'REPLICA');
      // Nothing is announced.
      await pastTriggers(database.db, 'api_keys', (transaction) => revokeKey(transaction, prefix));
      await master.set(EPOCH_KEY, 'new');
    } finally {
      master.disconnect();
    }
    await redis.master.kill();
    await eventually('both servers have the new master', () => said('redis back').every((times) => times === 1));
    assert.deepEqual(tally(await askAll(key)), { 401: 10 });
    const replica = new Redis(redis.replica.url);
    assert.notEqual(await replica.get(EPOCH_KEY).finally(() => replica.disconnect()), 'new');
  });
});
