import assert from 'node:assert/strict';
import { Redis } from 'ioredis';
import { setPlan } from '../../src/limits/plans.js';
import { runCommand } from '../support/programs/command.js';
import { eventually } from '../support/eventually.js';
import type { Outcome } from '../support/program.js';
import { send } from '../support/request.js';
import { startRedis } from '../support/redis/redis.js';
import type { TestService } from '../support/service.js';
import { testWorld } from '../support/world.js';

describe('commands beside servers that share a Redis', () => {
  const world = testWorld({ redis: true });
  let direct: Redis;
  let server: TestService;

  before(async () => {
    direct = new Redis(world.redis.url);
    direct.on('error', () => undefined);
    world.defer(() => direct.disconnect());
    server = await world.startService();
  });

  function catalog(...args: string[]): Promise<Outcome> {
    return runCommand(args, world.environment);
  }

  async function statusOf(key: string): Promise<number> {
    return (await send(server.url, '/api/v1/me', { headers: { 'x-api-key': key } })).status;
  }

  it('"developers quotas" shows what each plan of a developer has used', async () => {
    const { key: first, developerId } = await world.newKey({ planId: 'free' });
    const { key: second } = await world.newKey({ planId: 'pro', developerId });
    for (const key of [first, first, first, second]) assert.equal(await statusOf(key), 200);
    const quotas = ['developers', 'quotas', String(developerId)];
    const { code, stdout, stderr } = await catalog(...quotas, '--json');
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
    const resets = /"resets_in_seconds": (\d+)/g;
    assert.deepEqual(JSON.parse(stdout.replace(resets, '"resets_in_seconds": 0')), {
      developer_id: developerId,
      quotas: [
        { plan: 'free', per: 'minute', used: 3, remaining: 57, limit: 60, resets_in_seconds: 0 },
        { plan: 'free', per: 'day', used: 3, remaining: 9_997, limit: 10_000, resets_in_seconds: 0 },
        { plan: 'pro', per: 'minute', used: 1, remaining: 599, limit: 600, resets_in_seconds: 0 },
        { plan: 'pro', per: 'day', used: 1, remaining: 249_999, limit: 250_000, resets_in_seconds: 0 },
      ],
    });
    const table = (await catalog(...quotas)).stdout;
    assert.match(table, /^plan +per +used +remaining +limit +resets in \(s\)\n/);
    assert.match(table, /^free +minute +3 +57 +60 +\d+$/m);
    assert.match(table, /^free +day +3 +9997 +10000 +\d+$/m);
  });

  it('"developers quotas" shows what was used before a plan was lowered', async () => {
    const generous = { name: 'Lowered', requestsPerMinute: 5, requestsPerDay: 50, commercialUse: false };
    await setPlan(world.db, 'lowered', generous);
    const { key, developerId } = await world.newKey({ planId: 'lowered' });
    for (let i = 0; i < 3; i += 1) assert.equal(await statusOf(key), 200);
    await setPlan(world.db, 'lowered', { requestsPerMinute: 2 });
    const { stdout } = await catalog('developers', 'quotas', String(developerId));
    assert.match(stdout, /^lowered +minute +3 +0 +2 +\d+$/m);
    assert.match(stdout, /^lowered +day +3 +47 +50 +\d+$/m);
  });

  it('"developers quotas" fails for a developer without a key, without Redis, and with a wrong password, which is not printed', async () => {
    const { developerId } = await world.newKey();
    const quotas = ['developers', 'quotas', String(developerId)];
    assert.deepEqual(await catalog('developers', 'quotas', '2000000000'), {
      code: 1,
      stdout: '',
      stderr: 'catalog: There is no developer 2000000000. "catalog developers list" shows them all.\n',
    });
    assert.deepEqual(await runCommand(quotas, { DATABASE_URL: world.url }), {
      code: 1,
      stdout: '',
      stderr:
        'catalog: REDIS_URL is not set, so only the server process has the counts. The developer can read them in the RateLimit header of each response.\n',
    });
    await direct.config('SET', 'requirepass', 's3cret');
    try {
      const withPassword = (password: string): Promise<Outcome> =>
        runCommand(quotas, { ...world.environment, REDIS_URL: world.redis.url.replace('//', `//:${password}@`) });
      const { code, stderr } = await withPassword('wr0ng');
      assert.equal(code, 1);
      assert.match(stderr, /cannot be reached \(WRONGPASS/);
      assert.doesNotMatch(stderr, /wr0ng|s3cret/);
      assert.equal((await withPassword('s3cret')).code, 0);
    } finally {
      await direct.config('SET', 'requirepass', '');
    }
  });

  it('a node of a Redis Cluster is refused by servers and commands, and a change is saved', async () => {
    const node = await startRedis({ settings: { 'cluster-enabled': 'yes' } });
    const admin = new Redis(node.url);
    try {
      await admin.cluster('ADDSLOTSRANGE', 0, 16_383);
      await eventually('the node has all slots', async () => (await admin.cluster('INFO')).includes('state:ok'));
      const reason = 'The Redis named by REDIS_URL is sharded, such as a node of a Redis Cluster.';
      await assert.rejects(world.startService({ redisUrl: node.url }), { name: 'OperatorError', message: reason });
      const { prefix, developerId } = await world.newKey();
      const run = (...args: string[]): Promise<Outcome> =>
        runCommand(args, { ...world.environment, REDIS_URL: node.url });
      assert.deepEqual(await run('developers', 'quotas', String(developerId)), {
        code: 1,
        stdout: '',
        stderr: `catalog: ${reason} For a cluster, set REDIS_URL to redis+cluster://host:port,host:port, or rediss+cluster for TLS, with some of its nodes. A sharding proxy is not supported.\n`,
      });
      const { code, stderr } = await run('keys', 'revoke', prefix);
      assert.equal(code, 0);
      assert.ok(stderr.startsWith(`catalog: ${reason} For a cluster,`), stderr);
    } finally {
      admin.disconnect();
      await node.stop();
    }
  });

  it('a Redis that is no cluster is refused by servers and commands where REDIS_URL names a cluster', async () => {
    const redisUrl = world.redis.url.replace('redis:', 'redis+cluster:');
    const reason = 'The Redis named by REDIS_URL is no Redis Cluster.';
    await assert.rejects(world.startService({ redisUrl }), { name: 'OperatorError', message: reason });
    const { developerId } = await world.newKey();
    const environment = { ...world.environment, REDIS_URL: redisUrl };
    assert.deepEqual(await runCommand(['developers', 'quotas', String(developerId)], environment), {
      code: 1,
      stdout: '',
      stderr: `catalog: ${reason} Set REDIS_URL to redis://host:port, or rediss for TLS.\n`,
    });
  });

  it('a command that cannot reach Redis prints what it waits for, and reports its change once it applies', async () => {
    const [first, second, third] = [await world.newKey(), await world.newKey(), await world.newKey()];
    const waiting = 'Waiting until every server applies the change.';
    assert.deepEqual(await runCommand(['keys', 'revoke', first.prefix], { DATABASE_URL: world.url }), {
      code: 0,
      stdout: `Revoked ${first.prefix}. Requests with it fail from now on.\n`,
      stderr: `catalog: REDIS_URL is not set here. ${waiting}\n`,
    });
    await world.redis.kill();
    assert.deepEqual(await catalog('keys', 'revoke', second.prefix), {
      code: 0,
      stdout: `Revoked ${second.prefix}. Requests with it fail from now on.\n`,
      stderr: `catalog: The Redis named by REDIS_URL cannot be reached. ${waiting}\n`,
    });
    const { code, stderr } = await catalog('developers', 'quotas', String(third.developerId));
    assert.equal(code, 1);
    assert.match(stderr, /^catalog: The Redis named by REDIS_URL cannot be reached/);
  });
});
