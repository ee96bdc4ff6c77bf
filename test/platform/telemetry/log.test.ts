import assert from 'node:assert/strict';
import { createLog, describeError } from '../../../src/platform/telemetry/log.js';

describe('the log', () => {
  it('an error is logged by its name, message, code, stack and cause, without other properties', () => {
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

  it('every log line has the level and the time', () => {
    let line = '';
    const log = createLog('info', { write: (text) => (line = text) });
    const before = Date.now();
    log.info({ url: '/x' }, 'a line');
    const { time, ...rest } = JSON.parse(line) as { time: string };
    assert.deepEqual(rest, { level: 30, url: '/x', msg: 'a line' });
    const at = Date.parse(time);
    assert.ok(at >= before && at <= Date.now(), time);
  });
});
