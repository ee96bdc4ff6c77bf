import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { createLog, describeError } from '../../../src/platform/telemetry/log.js';

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
    logs.requestLog('info', {}, 'one');
    logs.requestLog('info', {}, 'two');
    assert.equal(writes.length, 0);
    logs.log.warn({}, 'three');
    assert.deepEqual(messages(), ['one', 'two', 'three']);
    logs.requestLog('info', {}, 'four');
    await turn();
    assert.deepEqual(messages(), ['one', 'two', 'three', 'four']);
    assert.equal(writes.length, 3);
  });

  it('gives up nothing at the end of the process', () => {
    const { messages, logs } = open();
    logs.requestLog('info', {}, 'last');
    logs.flush();
    assert.deepEqual(messages(), ['last']);
  });

  it('has lines of requests in the form of all others', () => {
    for (const members of [undefined, { worker: 3, pid: 7 }]) {
      const writes: string[] = [];
      const logs = createLog('info', { write: (text: string) => void writes.push(text) }, members);
      const line = {
        url: '/"\\\n\u2028é😀\ud800',
        status: 200,
        duration_ms: 0.25,
        left_out: undefined,
        error: { code: null },
      };
      logs.log.warn(line, 'a "line"');
      logs.requestLog('warn', line, 'a "line"');
      logs.log.error({}, 'nothing else');
      logs.requestLog('error', {}, 'nothing else');
      logs.flush();
      const [one, other, third, fourth] = writes.map((text) => text.replace(/"time":"[^"]+"/, '"time":""'));
      assert.equal(other, one);
      assert.equal(fourth, third);
    }
  });

  it('leaves out lines below its level', () => {
    for (const [level, count] of [
      ['debug', 3],
      ['warn', 2],
      ['error', 1],
      ['silent', 0],
    ] as const) {
      const writes: string[] = [];
      const logs = createLog(level, { write: (text: string) => void writes.push(text) });
      logs.requestLog('info', {}, 'fine');
      logs.requestLog('warn', {}, 'away');
      logs.requestLog('error', {}, 'broken');
      logs.flush();
      assert.equal(writes.join('').split('\n').length - 1, count, level);
    }
  });

  it('says of an error what it is, and nothing that hangs on it', () => {
    const cause = Object.assign(new TypeError('why'), { connection: { password: 'secret' }, code: 5n });
    const error = Object.assign(new Error('what', { cause }), { code: 'E_WHAT', query: 'secret' });
    interface Described {
      readonly stack: string;
      readonly cause?: Described;
    }
    const { stack, cause: why, ...said } = JSON.parse(JSON.stringify(describeError(error))) as Described;
    assert.deepEqual(said, { type: 'Error', message: 'what', code: 'E_WHAT' });
    assert.match(stack, /^Error: what\n/);
    assert.deepEqual({ ...why, stack: '' }, { type: 'TypeError', message: 'why', stack: '' });
    assert.match(why?.stack ?? '', /^TypeError: why\n/);
    assert.deepEqual(describeError('a text'), { message: 'a text' });
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
