import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { converse } from '../support/http/conversation.js';
import { eventually } from '../support/eventually.js';
import { assertProblem } from '../support/problem.js';
import { timesLogged, type ServerProcess } from '../support/program.js';
import { send, type Reply } from '../support/request.js';
import { areGone, startWorkers, workersOf } from '../support/deployments/workers.js';
import { testWorld } from '../support/world.js';

/** Longer than a test may take: it fails if it waits for the end of such a drain. */
const ENDLESS_SECONDS = '600';

/** Clients that send requests all the time. */
const KEPT = 8;

describe('a server that SIGTERM stops', () => {
  const world = testWorld({ redis: true });
  let headers: { authorization: string };
  let server: ServerProcess;

  before(async () => (headers = { authorization: `Bearer ${(await world.newKey()).key}` }));

  afterEach(() => server.stop('SIGKILL'));

  async function start(workers: number, drainSeconds: string, detached = false): Promise<void> {
    server = await startWorkers({ ...world.environment, DRAIN_SECONDS: drainSeconds }, workers, [], { detached });
  }

  function assertServed({ status, headers: { connection } }: Reply): void {
    assert.deepEqual({ status, connection }, { status: 200, connection: 'close' });
  }

  // One drain for each number of processes: these clients take all of the machine's time.
  for (const [workers, drainSeconds] of [
    [1, '0'],
    [2, '1'],
  ] as const) {
    it(`clients that send request after request are all answered until connections are refused (WORKERS=${workers}, DRAIN_SECONDS=${drainSeconds})`, async function () {
      // On a busy machine, a process may wait longer than clients keep their connections. If the server closed in another
      // order, most clients would be reset each time.
      this.retries(2);
      await start(workers, drainSeconds);
      let answers = 0;
      const clients = Array.from({ length: KEPT }, async () => {
        const agent = new Agent({ keepAlive: true, maxSockets: 1 });
        try {
          for (;;) {
            const { status } = await send(server.url, '/api/v1/me', { headers, agent });
            assert.equal(status, 200);
            answers += 1;
          }
        } catch (error) {
          // A connection that is reset has another code.
          assert.equal((error as NodeJS.ErrnoException).code, 'ECONNREFUSED', String(error));
        }
      });
      await eventually('all are at work', () => answers > KEPT * 5);
      const stoppedAt = performance.now();
      const ended = server.stop();
      await Promise.all(clients);
      const { code, stderr } = await ended;
      assert.deepEqual([code, stderr], [0, '']);
      assert.ok(performance.now() - stoppedAt >= Number(drainSeconds) * 1_000);
    });
  }

  for (const workers of [1, 2]) {
    it(`after SIGTERM, also to all its processes, a server serves while balancers and clients leave, and a second signal ends it at once (WORKERS=${workers})`, async () => {
      // As systemd sends it.
      await start(workers, ENDLESS_SECONDS, true);
      const pids = workersOf(server);
      const agent = new Agent({ keepAlive: true });
      const kept = await send(server.url, '/api/v1/me', { headers, agent });
      assert.deepEqual([kept.status, kept.headers.connection], [200, 'keep-alive']);

      process.kill(-(server.child.pid ?? assert.fail()), 'SIGTERM');
      const processes = workers === 1 ? 1 : workers + 1;
      await eventually('all processes are stopping', () => timesLogged(server, 'stopping') === processes);
      // As many as it takes for each worker to get some.
      for (let i = 0; i < workers * 2; i += 1) {
        const readiness = await send(server.url, '/readyz');
        const { reasons, checks } = readiness.json as { reasons: { code: string }[]; checks: object };
        assert.deepEqual(
          reasons.map(({ code }) => code),
          ['shutting_down'],
        );
        assertProblem(readiness, 'service_unavailable', {
          members: { reasons, checks },
          headers: { connection: 'close', 'retry-after': '2' },
        });
        assertServed(await send(server.url, '/api/v1/stats', { headers }));
        assertServed(await send(server.url, '/livez'));
      }
      assertServed(await send(server.url, '/api/v1/me', { headers, agent }));
      agent.destroy();
      // Of requests that come together, only the last answer closes the connection.
      const request = `GET /api/v1/stats HTTP/1.1\r\nHost: x\r\nAuthorization: ${headers.authorization}\r\n\r\n`;
      const { received, statuses } = await converse(server.url, request.repeat(5));
      assert.deepEqual(statuses, Array(5).fill(200));
      assert.equal(received.split('Connection: close').length - 1, 1);

      const { code, stderr } = await server.stop('SIGINT');
      assert.deepEqual([code, stderr], [1, '']);
      await areGone(pids);
    });
  }
});
