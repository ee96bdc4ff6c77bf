import assert from 'node:assert/strict';
import { eventually } from '../support/eventually.js';
import { startServer } from '../support/program.js';
import { startRedis, type TestRedis } from '../support/redis.js';
import { send } from '../support/request.js';
import { serverProcesses } from '../support/programs/server-processes.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { areGone, startWorkers, workersOf } from '../support/deployments/workers.js';

describe('workers on the embedded PostgreSQL', () => {
  let redis: TestRedis;
  let environment: { DATA_DIR: string; REDIS_URL: string };

  before(async () => {
    redis = await startRedis();
    environment = { DATA_DIR: await temporaryFolder(), REDIS_URL: redis.url };
  });

  after(() => redis.stop());

  it('use the server that the primary started, which stops after them', async () => {
    const server = await startServer({ ...environment, WORKERS: '2' }, ['--demo']);
    const key = await eventually('the welcome', () => /svc_\w{8}_\w{38}/.exec(server.output.stdout)?.[0]);
    const headers = { authorization: `Bearer ${key}` };
    const replies = await Promise.all([1, 2, 3, 4].map(() => send(server.url, '/api/v1/stats', { headers })));
    assert.deepEqual(
      replies.map(({ status }) => status),
      [200, 200, 200, 200],
    );
    const { code, stdout, stderr } = await server.stop();
    assert.deepEqual([code, stderr], [0, '']);
    assert.equal(stdout.match(/"msg":"postgres_started"/g)?.length, 1);
    assert.match(stdout, /"msg":"postgres_stopped"}\n.*"msg":"stopped"}\n$/);
    assert.deepEqual(serverProcesses(environment.DATA_DIR), []);
  });

  it('stop the server when their primary was killed', async () => {
    const server = await startWorkers(environment, 2);
    const pids = workersOf(server);
    await server.stop('SIGKILL');
    await areGone(pids);
    assert.deepEqual(serverProcesses(environment.DATA_DIR), []);
  });
});
