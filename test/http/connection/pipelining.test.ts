import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { eventually } from '../../support/eventually.js';
import { startService, type TestService } from '../../support/service.js';

const STATUS_LINE = 'HTTP/1.1 200 OK';

describe('requests that one connection sends at once', () => {
  let service: TestService;

  before(async () => {
    service = await startService();
  });

  after(() => service.stop());

  it('leave other connections their turn, and are all answered', async () => {
    const COUNT = 8_000;
    const socket = connect(Number(new URL(service.url).port), '127.0.0.1');
    let answered = 0;
    let rest = '';
    socket.on('data', (chunk: Buffer) => {
      const text = rest + chunk.toString('latin1');
      answered += text.split(STATUS_LINE).length - 1;
      // As much of a status line as may have come.
      rest = text.slice(Math.max(text.lastIndexOf(STATUS_LINE) + 1, text.length - STATUS_LINE.length + 1));
    });
    try {
      socket.write('GET /livez HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(COUNT));
      await eventually('the first is answered', () => answered > 0);
      for (let i = 0; i < 10; i += 1) assert.equal((await service.get('/api/v1/stats')).status, 200);
      assert.ok(answered < COUNT, `all ${COUNT} were answered before ten others`);
      await eventually('all are answered', () => answered === COUNT);
    } finally {
      socket.destroy();
    }
  });
});
