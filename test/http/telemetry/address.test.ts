import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { text as readText } from 'node:stream/consumers';
import { isTrustedHost } from '../../../src/http/telemetry/metrics-server.js';
import { eventually } from '../../support/eventually.js';
import { send } from '../../support/request.js';
import { testWorld } from '../../support/world.js';
import { scrape } from '../../support/http/exposition.js';

describe('the metrics address', () => {
  const world = testWorld();

  /** Occupies a port while something is done. */
  async function whileTaken<T>(port: number, act: (port: number) => Promise<T>): Promise<T> {
    const other = createServer((_request, response) => response.end('other'));
    await new Promise<void>((resolve, reject) => {
      other.on('error', (error: NodeJS.ErrnoException) => {
        // A port that another program has occupied will do.
        if (error.code === 'EADDRINUSE') resolve();
        else reject(error);
      });
      other.listen(port, '127.0.0.1', resolve);
    });
    try {
      return await act(port === 0 ? (other.address() as AddressInfo).port : port);
    } finally {
      other.close();
      other.closeAllConnections();
    }
  }

  it('the metrics address has only /metrics without the operator pages, and closes with the server', async () => {
    const service = await world.startService({
      settings: { METRICS_ADDRESS: '127.0.0.1:0', OPERATOR_PAGES: 'off' },
    });
    const origin = service.operatorUrl ?? assert.fail('no metrics');
    const { port } = new URL(origin);
    await scrape(`${origin}/metrics`);
    assert.equal((await send(origin, '/metrics?name[]=x')).status, 200);

    for (const [host, status] of [
      ['localhost', 200],
      ['evil.example', 421],
    ] as const) {
      const reply = await send(origin, '/metrics', { headers: { host: `${host}:${port}` } });
      assert.deepEqual([host, reply.status], [host, status]);
    }

    const head = await send(origin, '/metrics', { method: 'HEAD' });
    assert.equal(head.status, 200);
    assert.equal(head.text, '');
    assert.ok(Number(head.headers['content-length']) > 1_000);

    for (const path of ['/', '/metrics/', '/Metrics', '/api/v1/me', '/livez', '//metrics', '/%6detrics']) {
      const { status, text } = await send(origin, path);
      assert.deepEqual([path, status, text], [path, 404, 'This address has only /metrics.\n']);
    }
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']) {
      const { status, headers } = await send(origin, '/metrics', { method, body: 'x' });
      assert.deepEqual([status, headers.allow], [405, 'GET, HEAD']);
    }
    // The address of the API has no metrics.
    assert.equal((await send(service.url, '/metrics')).status, 404);

    const malformed = connect(Number(port), '127.0.0.1');
    malformed.end('nonsense\r\n\r\n');
    assert.match(await readText(malformed), /^HTTP\/1\.1 400 /);

    // Connections that hang delay neither a scrape nor the shutdown.
    const hanging = Array.from({ length: 40 }, () => connect(Number(port), '127.0.0.1'));
    for (const socket of hanging) socket.on('error', () => undefined).write('GET /metrics HTTP/1.1\r\n');
    await eventually('they are cut off', async () => scrape(`${origin}/metrics`));
    await service.stop();
    await assert.rejects(send(origin, '/metrics'), { code: 'ECONNREFUSED' });
    for (const socket of hanging) socket.destroy();
  });

  it('the metrics address answers to addresses, private names and its own name, so that no other site can read it', () => {
    const own = 'metrics.example.org';
    const trusted = ['127.0.0.1', '127.0.0.1:9464', '[::1]:9464', 'localhost:9464', 'catalog:9464', `${own}:9464`, own];
    for (const host of [...trusted, undefined, '', 'a.svc.cluster.local:9464', 'catalog.INTERNAL']) {
      assert.equal(isTrustedHost(host, own), true, host);
    }
    for (const host of ['evil.example', 'localhost.evil.example', `x.${own}`, '127.0.0.1.nip.io:9464', 'x.xlocal']) {
      assert.equal(isTrustedHost(host, own), false, host);
    }
  });

  it('a configured metrics address that is not available prevents the start', async () => {
    const start = (address: string): Promise<unknown> => world.startService({ settings: { METRICS_ADDRESS: address } });
    await whileTaken(0, async (port) => {
      await assert.rejects(start(`127.0.0.1:${port}`), {
        name: 'OperatorError',
        message: `Cannot listen on METRICS_ADDRESS 127.0.0.1:${port}: the port is in use.`,
        advice: 'Stop what uses it, or set METRICS_ADDRESS to another one.',
      });
    });
    await assert.rejects(start('192.0.2.1:9464'), {
      name: 'OperatorError',
      message: 'Cannot listen on METRICS_ADDRESS 192.0.2.1:9464: this machine does not have the address.',
      advice: 'Set METRICS_ADDRESS to one that it has.',
    });
  });

  it('a default metrics address that is in use is left out with one warning, and METRICS_ADDRESS=off has none', async () => {
    await whileTaken(9464, async () => {
      const warningsWith = async (address: string): Promise<string[]> => {
        const service = await world.startService({ settings: { METRICS_ADDRESS: address } });
        assert.equal(service.operatorUrl, undefined);
        assert.equal((await service.get('/livez')).status, 200);
        const lines = service.logged.map((line) => JSON.parse(line) as { level: number; msg: string });
        return lines.filter(({ level }) => level === 40).map(({ msg }) => msg);
      };
      // An empty setting counts as not set.
      assert.deepEqual(await warningsWith(''), [
        'metrics are not served (METRICS_ADDRESS=off prevents this warning): Cannot listen on METRICS_ADDRESS 127.0.0.1:9464: the port is in use. Stop what uses it, or set METRICS_ADDRESS to another one.',
      ]);
      assert.deepEqual(await warningsWith('off'), []);
    });
  });
});
