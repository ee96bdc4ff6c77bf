import assert from 'node:assert/strict';
import { createServer, type RequestListener } from 'node:http';
import { listenLocally } from '../../support/http/local-server.js';
import { runCommand } from '../../support/programs/command.js';
import type { Outcome } from '../../support/program.js';
import { TcpProxy } from '../../support/proxies/tcp-proxy.js';
import { testWorld } from '../../support/world.js';

/** Checks the server on a port of this machine. */
function health(port: number | string, settings: Record<string, string> = {}, ...flags: string[]): Promise<Outcome> {
  return runCommand(['health', ...flags], { PORT: String(port), ...settings });
}

describe('catalog health', () => {
  const world = testWorld();

  it('catalog health succeeds while the server is ready, and fails once it cannot serve', async () => {
    const network = await TcpProxy.start(world.url);
    world.defer(() => network.stop());
    const service = await world.startService({ databaseUrl: network.url });
    const { port, origin } = new URL(service.url);
    const ready = `The server on ${origin} is ready.\n`;
    assert.deepEqual(await health(port), { code: 0, stdout: ready, stderr: '' });
    // A server that listens everywhere is reached by loopback.
    assert.deepEqual(await health(port, { HOST: '0.0.0.0' }), { code: 0, stdout: ready, stderr: '' });
    const { stdout } = await health(port, {}, '--json');
    assert.deepEqual(JSON.parse(stdout), { url: origin, status: 'ready', reasons: [] });

    network.leadTo('tcp://127.0.0.1:9');
    network.cut();
    const failed = await health(port);
    assert.deepEqual([failed.code, failed.stdout], [1, '']);
    assert.match(failed.stderr, new RegExp(`^catalog: The server on ${origin} is not ready\\. .+\\n$`));
  });

  it('catalog health says why a degraded server still counts as ready', async () => {
    const degraded = { status: 'degraded', reasons: [{ code: 'redis_lost', detail: 'Redis is lost.' }] };
    await withServer(
      (_request, response) => response.end(JSON.stringify(degraded)),
      async (port) => {
        assert.deepEqual(await health(port), {
          code: 0,
          stdout: `The server on http://127.0.0.1:${port} is degraded. Redis is lost.\n`,
          stderr: '',
        });
      },
    );
  });

  it('catalog health fails without a server, with another program on the port, and without a port', async () => {
    const freePort = await withServer(
      (_request, response) => response.end('<html>'),
      async (port) => {
        const { code, stderr } = await health(port);
        assert.equal(code, 1);
        assert.match(stderr, /^catalog: The server on \S+ does not answer as expected: .*JSON/);
        return port;
      },
    );
    const { code, stderr } = await health(freePort);
    assert.equal(code, 1);
    assert.match(stderr, /does not answer as expected: connect ECONNREFUSED/);
    assert.match((await health(0)).stderr, /^catalog: PORT is 0/);
  });

  it('catalog health fails with one sentence when another program answers with JSON of another shape', async () => {
    await withServer(
      (_request, response) => response.end('null'),
      async (port) => {
        assert.deepEqual(await health(port), {
          code: 1,
          stdout: '',
          stderr: `catalog: The server on http://127.0.0.1:${port} is not ready. Is it this service?\n`,
        });
      },
    );
  });

  it('catalog health does not wait for ever for a server that does not answer', async () => {
    await withServer(
      () => undefined,
      async (port) => {
        const { code, stderr } = await health(port);
        assert.equal(code, 1);
        assert.match(stderr, /does not answer as expected: .*timeout/);
      },
    );
  });
});

/** Runs a test against a server of its own. */
async function withServer<T>(answer: RequestListener, test: (port: number) => Promise<T>): Promise<T> {
  const { port, stop } = await listenLocally(createServer(answer));
  try {
    return await test(port);
  } finally {
    await stop();
  }
}
