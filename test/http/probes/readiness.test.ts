import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { OUTAGES } from '../../../src/platform/telemetry/health.js';
import { startService } from '../../support/service.js';
import { assertReadiness } from '../../support/http/readiness.js';
import { readGuide } from '../../support/guides.js';

// Lost dependencies are in test/outages and test/replica.
describe('readiness', () => {
  it('a service that shuts down is not ready, with the reason shutting_down', async () => {
    const service = await startService();
    const socket = connect({ port: Number(new URL(service.url).port), host: '127.0.0.1' });
    let stopping: Promise<void> | undefined;
    try {
      await assertReadiness(service.url, ['database'], []);
      // The service waits for this request, whose end arrives after the shutdown has begun.
      socket.write('GET /livez HTTP/1.1\r\nHost: x\r\n\r\nGET /readyz HTTP/1.1\r\nHost: x\r\n');
      await once(socket, 'data');
      stopping = service.stop();
      const answered = once(socket, 'data');
      socket.write('\r\n');
      const [answer] = (await answered) as [Buffer];
      const [head = '', body = ''] = answer.toString().split('\r\n\r\n');
      assert.match(head, /^HTTP\/1\.1 503 /);
      assert.match(head, /^Retry-After: 2$/m);
      assert.match(head, /^Connection: close$/m);
      const detail = 'This server is shutting down. It keeps serving for a short time; send new requests elsewhere.';
      const problem = JSON.parse(body) as Record<string, unknown>;
      assert.deepEqual(
        [problem.code, problem.detail, problem.reasons, problem.checks],
        ['service_unavailable', detail, [{ code: 'shutting_down', detail }], { database: 'up' }],
      );
    } finally {
      socket.destroy();
      await (stopping ?? service.stop());
    }
  });

  it('the guide lists every reason of /readyz', async () => {
    const guide = await readGuide('operators/monitor');
    const codes = [...Object.keys(OUTAGES).map((dependency) => `${dependency}_lost`), 'shutting_down'];
    assert.deepEqual(
      codes.filter((code) => !guide.includes(`\`${code}\``)),
      [],
    );
  });
});
