import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { createLog } from '../../src/platform/log.js';

describe('the log', () => {
  function open(): { writes: string[]; messages: () => string[]; logs: ReturnType<typeof createLog> } {
    const writes: string[] = [];
    const logs = createLog('info', { write: (text: string) => void writes.push(text) }, { worker: 3 });
    const messages = () =>
      writes
        .join('')
        .trimEnd()
        .split('\n')
        .map((line) => (JSON.parse(line) as { msg: string }).msg);
    return { writes, messages, logs };
  }

  it('writes the lines of requests that end together at once, and every line in its order', async () => {
    const { writes, messages, logs } = open();
    logs.requestLog.info({}, 'one');
    logs.requestLog.info({}, 'two');
    assert.equal(writes.length, 0);
    logs.log.warn({}, 'three');
    assert.deepEqual(messages(), ['one', 'two', 'three']);
    logs.requestLog.info({}, 'four');
    await turn();
    assert.deepEqual(messages(), ['one', 'two', 'three', 'four']);
    assert.equal(writes.length, 3);
  });

  it('gives up nothing at the end of the process', () => {
    const { messages, logs } = open();
    logs.requestLog.info({}, 'last');
    logs.flush();
    assert.deepEqual(messages(), ['last']);
  });

  it('has the time and the members of every line', () => {
    const { writes, logs } = open();
    const before = Date.now();
    logs.log.info({ url: '/x' }, 'a line');
    const { time, ...rest } = JSON.parse(writes[0] ?? '') as { time: string };
    assert.deepEqual(rest, { level: 30, worker: 3, url: '/x', msg: 'a line' });
    const at = Date.parse(time);
    assert.ok(at >= before && at <= Date.now(), time);
  });
});
