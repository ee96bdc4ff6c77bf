import assert from 'node:assert/strict';
import pino from 'pino';
import { parseTarget } from '../../../src/http/request/target.js';
import { logFailedAnswers } from '../../../src/http/telemetry/loggable-error.js';
import { generateApiKey } from '../../../src/keys/api-key.js';
import { contextOf } from '../../support/http/context.js';

describe('an answer that fails', () => {
  const lines: string[] = [];
  const onError = logFailedAnswers(pino({}, { write: (line: string) => lines.push(line) }));

  beforeEach(() => {
    lines.length = 0;
  });

  it('an answer that fails is logged without the key of its request', () => {
    const { key } = generateApiKey();
    const ctx = contextOf();
    ctx.req.rawHeaders = ['X-API-Key', key];
    ctx.state = { requestId: 'failed-1', target: parseTarget('/') };
    onError(new Error(`a mistake about ${key}`), ctx);
    assert.equal(lines.length, 1);
    const { level, request_id: id, msg } = JSON.parse(lines[0] ?? '') as Record<string, unknown>;
    assert.deepEqual([level, id, msg], [40, 'failed-1', 'answer failed']);
    assert.ok(!lines[0]?.includes(key.slice(-20)));
  });

  it('an answer whose connection the client broke is not logged again', async () => {
    const ctx = contextOf();
    const reset = new Error('read ECONNRESET');
    ctx.req.socket.on('error', () => undefined).destroy(reset);
    await new Promise(setImmediate);
    onError(reset, ctx);
    assert.deepEqual(lines, []);
  });
});
