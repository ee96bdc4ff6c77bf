import assert from 'node:assert/strict';
import { generateApiKey } from '../../src/keys/api-key.js';
import { openTestDatabase, type OpenTestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { runProgram, startServer, timesLogged, type ServerProcess } from '../support/program.js';
import { startRedisCluster, type TestRedisCluster } from '../support/redis/redis-cluster.js';
import { Retries } from '../support/deployments/retries.js';
import { ask, newKey, newPlan, tally, whileRedisIsThere, type Answer } from '../support/deployments/deployment.js';

/** Of revoking a key by command. */
const TRIALS = 3;

describe('two server processes with a Redis Cluster of three nodes', () => {
  const retries = new Retries('a server lost Redis meanwhile');
  let database: OpenTestDatabase;
  let cluster: TestRedisCluster;
  let environment: Record<string, string>;
  let servers: ServerProcess[];

  before(async () => {
    [database, cluster] = await Promise.all([openTestDatabase(), startRedisCluster()]);
    environment = { DATABASE_URL: database.url, REDIS_URL: cluster.url, TRUST_PROXY: '1' };
    servers = await Promise.all([startServer(environment), startServer(environment)]);
    await newPlan(database.db, 'wide', 100_000, 100_000);
    // A program that has just started is slow: that is not what is tried here.
    const { key } = await newKey(database.db, 'wide');
    await storm(300, () => key);
    await untilBack();
  });

  after(async () => {
    await Promise.all(servers.map((server) => server.stop()));
    await cluster.stop();
    await database.close();
  });

  function storm(requests: number, key: () => string, address?: string): Promise<Answer[]> {
    return Promise.all(
      Array.from({ length: requests }, (_, i) => ask(servers[i % servers.length]?.url ?? '', key(), address)),
    );
  }

  /** How often each server has said this. */
  function said(message: string): number[] {
    return servers.map((server) => timesLogged(server, message));
  }

  async function untilBack(): Promise<void> {
    await eventually('both servers have Redis', () =>
      said('redis back').every((times, i) => times === said('redis lost')[i]),
    );
  }

  async function newLimitedKey(plan: string): Promise<string> {
    return (await newKey(database.db, await newPlan(database.db, plan, 100, 100_000))).key;
  }

  it('hold limits exactly', () =>
    whileRedisIsThere(
      () => servers,
      retries,
      async () => {
        const key = await newLimitedKey('exact');
        const answers = await storm(400, () => key);
        assert.deepEqual(tally(answers), { 200: 100, 429: 300 });
      },
    ));

  it('count the keys that fail from one address together', () => {
    let attempts = 0;
    return whileRedisIsThere(
      () => servers,
      retries,
      async () => {
        attempts += 1;
        const answers = await storm(60, () => generateApiKey().key, `198.51.100.${attempts}`);
        assert.deepEqual(tally(answers), { 401: 30, 429: 30 });
      },
    );
  });

  it('refuse a revoked key once the command line reports success, and catalog usage has their counts', async () => {
    const lostBefore = said('redis lost');
    for (let trial = 0; trial < TRIALS; trial += 1) {
      const { key, prefix, developerId } = await newKey(database.db, 'wide');
      // So often that both have it cached.
      assert.deepEqual(tally(await storm(10, () => key)), { 200: 10 });
      const usage = await runProgram(['usage', '--developer', String(developerId), '--json'], environment);
      const { plans } = JSON.parse(usage.stdout) as { plans: [{ minute: { used: number } }] };
      assert.deepEqual([usage.stderr, plans[0].minute.used], ['', 10]);
      const { code, stderr } = await runProgram(['keys', 'revoke', prefix], environment);
      assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
      assert.deepEqual(tally(await storm(10, () => key, `192.0.2.${trial}`)), { 401: 10 });
    }
    // All this was decided with Redis, not without.
    assert.deepEqual(said('redis lost'), lostBefore);
  });

  for (const [what, index] of [
    ['with their counters', 0],
    ['with other keys, which takes the Cluster down as a whole', 1],
  ] as const) {
    it(`serve without Redis while the node ${what} is dead, and with it again`, async () => {
      const node = cluster.nodes[index] ?? assert.fail();
      const lostBefore = said('redis lost');
      const { key } = await newKey(database.db, 'wide');
      const revoked = await newKey(database.db, 'wide');
      await storm(10, () => revoked.key);
      await node.kill();
      const answers: Answer[] = [];
      await eventually('both servers have lost Redis', async () => {
        answers.push(...(await storm(20, () => key)));
        return said('redis lost').every((times, i) => times > Number(lostBefore[i]));
      });
      const { code, stderr } = await runProgram(['keys', 'revoke', revoked.prefix], environment);
      assert.equal(code, 0);
      assert.match(stderr, /^catalog: The Redis named by REDIS_URL cannot be reached \(.+\)\. The change is made\./);
      const refused = await storm(10, () => revoked.key, `192.0.2.10${index}`);
      answers.push(...(await storm(100, () => key)));
      console.log(`      dead node: ${JSON.stringify(tally(answers))}, revoked key: ${JSON.stringify(tally(refused))}`);
      assert.deepEqual(tally(answers), { 200: answers.length });
      assert.deepEqual(tally(refused), { 401: 10 });
      await node.restart();
      await untilBack();
      const limited = await newLimitedKey(`after-${index}`);
      assert.deepEqual(tally(await storm(300, () => limited)), { 200: 100, 429: 200 });
    });
  }
});
