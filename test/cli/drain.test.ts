import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { converse } from '../support/http/conversation.js';
import { eventually } from '../support/eventually.js';
import { assertProblem } from '../support/problem.js';
import { startServer, timesLogged } from '../support/program.js';
import { send, type Reply } from '../support/request.js';
import { testWorld } from '../support/world.js';

/** Longer than a test may take: it fails if it waits for the end of such a drain. */
const ENDLESS_SECONDS = '600';

describe('a server that SIGTERM stops', () => {
  const world = testWorld();

  function assertServed({ status, headers: { connection } }: Reply): void {
    assert.deepEqual({ status, connection }, { status: 200, connection: 'close' });
  }

  it('after SIGTERM a server serves while balancers and clients leave, and a second signal ends it at once', async () => {
    const headers = { authorization: `Bearer ${(await world.newKey()).key}` };
    const server = await startServer({ ...world.environment, DRAIN_SECONDS: ENDLESS_SECONDS });
    world.defer(() => server.stop('SIGKILL'));
    const agent = new Agent({ keepAlive: true });
    const kept = await send(server.url, '/api/v1/me', { headers, agent });
    assert.deepEqual([kept.status, kept.headers.connection], [200, 'keep-alive']);

    server.child.kill('SIGTERM');
    await eventually('it is stopping', () => timesLogged(server, 'stopping') > 0);
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
    assertServed(await send(server.url, '/api/v1/me', { headers, agent }));
    agent.destroy();
    // Of requests that come together, only the last answer closes the connection.
    const request = `GET /api/v1/stats HTTP/1.1\r\nHost: x\r\nAuthorization: ${headers.authorization}\r\n\r\n`;
    const { received, statuses } = await converse(server.url, request.repeat(5));
    assert.deepEqual(statuses, Array(5).fill(200));
    assert.equal(received.split('Connection: close').length - 1, 1);

    const { code, stderr } = await server.stop('SIGINT');
    assert.deepEqual([code, stderr], [1, '']);
  });
});
