import assert from 'node:assert/strict';
import { eventually } from '../support/eventually.js';
import { startServer } from '../support/program.js';
import { startRedis, type TestRedis } from '../support/redis/redis.js';
import { send } from '../support/request.js';
import { serverProcesses, signalServers } from '../support/programs/server-processes.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { areGone, startWorkers, workersOf } from '../support/deployments/workers.js';

describe('a server with workers on the embedded PostgreSQL', () => {
  let redis: TestRedis;
  let environment: { DATA_DIR: string; REDIS_URL: string };

  before(async () => {
    redis = await startRedis();
    environment = { DATA_DIR: await temporaryFolder(), REDIS_URL: redis.url };
  });

  after(() => redis.stop());

  const isStopped = (): boolean => serverProcesses(environment.DATA_DIR).length === 0;

  it('the workers of a server share one embedded PostgreSQL, which stops after them', async () => {
    const server = await startServer({ ...environment, WORKERS: '2' }, ['--demo']);
    const key = await eventually('the welcome', () => /svc_\w{8}_\w{38}/.exec(server.output.stdout)?.[0]);
    const headers = { authorization: `Bearer ${key}` };
    const replies = await Promise.all([1, 2, 3, 4].map(() => send(server.url, '/api/v1/stats', { headers })));
    assert.deepEqual(
      replies.map(({ status }) => status),
      [200, 200, 200, 200],
    );
    const { code, stderr } = await server.stop();
    assert.deepEqual([code, stderr, isStopped()], [0, '', true]);
  });

  it('the embedded PostgreSQL stops even if the primary process of its server was killed', async () => {
    const server = await startWorkers(environment, 2);
    const pids = workersOf(server);
    await server.stop('SIGKILL');
    await areGone(pids);
    await eventually('PostgreSQL has stopped', isStopped);
  });

  for (const WORKERS of ['1', '2']) {
    it(`a server whose embedded PostgreSQL is killed ends with an error, WORKERS=${WORKERS}`, async () => {
      const server = await startServer({ ...environment, WORKERS });
      signalServers(environment.DATA_DIR, 'SIGKILL');
      const { code, stderr } = await server.ended;
      assert.deepEqual(
        [code, stderr],
        [1, `catalog: The embedded PostgreSQL in ${environment.DATA_DIR} ended unexpectedly.\n`],
      );
    });
  }
});
