import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { eventually } from '../support/eventually.js';
import { startServer } from '../support/program.js';
import { send } from '../support/request.js';
import { testWorld } from '../support/world.js';

/** Clients that send requests all the time. */
const CLIENTS = 8;

/**
 * Measured, because the order in which a server closes its connections works by pauses: on a machine that is too busy,
 * a process may wait longer than clients keep theirs.
 */
describe('a server that SIGTERM stops under load', () => {
  const world = testWorld({ redis: true });

  for (const drainSeconds of [0, 1]) {
    it(`clients that send request after request are all answered until connections are refused (DRAIN_SECONDS=${drainSeconds})`, async () => {
      const headers = { authorization: `Bearer ${(await world.newKey()).key}` };
      const server = await startServer({ ...world.environment, DRAIN_SECONDS: String(drainSeconds) });
      world.defer(() => server.stop('SIGKILL'));
      let answers = 0;
      const clients = Array.from({ length: CLIENTS }, async () => {
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
      await eventually('all are at work', () => answers > CLIENTS * 5);
      const stoppedAt = performance.now();
      const ended = server.stop();
      await Promise.all(clients);
      const { code, stderr } = await ended;
      assert.deepEqual([code, stderr], [0, '']);
      assert.ok(performance.now() - stoppedAt >= drainSeconds * 1_000);
    });
  }
});
