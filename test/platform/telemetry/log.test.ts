import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { createLog, describeError, lossLine } from '../../../src/platform/telemetry/log.js';

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

  it('writes the lines of one turn of the event loop together, in their order', async () => {
    const { writes, messages, logs } = open();
    logs.log.info({}, 'one');
    logs.log.warn({}, 'two');
    assert.equal(writes.length, 0);
    await turn();
    assert.deepEqual(messages(), ['one', 'two']);
    assert.equal(writes.length, 1);
  });

  it('gives up nothing at the end of the process', () => {
    const { messages, logs } = open();
    logs.log.info({}, 'last');
    logs.flush();
    assert.deepEqual(messages(), ['last']);
  });

  it('has the line with the number of dropped lines in the form of all others', () => {
    const line = JSON.parse(lossLine({ worker: 3 })(12)) as Record<string, unknown>;
    assert.deepEqual(
      { ...line, time: typeof line.time },
      {
        level: 40,
        time: 'string',
        worker: 3,
        dropped_lines: 12,
        msg: 'lines of the log were dropped before this one',
      },
    );
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
    logs.flush();
    const { time, ...rest } = JSON.parse(writes[0] ?? '') as { time: string };
    assert.deepEqual(rest, { level: 30, worker: 3, url: '/x', msg: 'a line' });
    const at = Date.parse(time);
    assert.ok(at >= before && at <= Date.now(), time);
  });
});
