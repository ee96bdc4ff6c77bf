import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { Problem } from '../../../src/errors.js';
import { deadline } from '../../../src/http/request/deadline.js';
import { contextOf } from '../../support/http/context.js';

describe('the deadline of a request', () => {
  it('after the deadline service_unavailable is thrown, and no further stage begins', async () => {
    const ctx = contextOf();
    const begun: string[] = [];
    let release: () => void = () => undefined;
    const first = new Promise<void>((resolve) => (release = resolve));
    const answered = deadline(20)(ctx, async () => {
      begun.push('first');
      await first;
      if (ctx.state.timedOut) throw new Error('the request was answered before');
      begun.push('second');
    });
    await assert.rejects(answered, (error) => {
      assert.ok(error instanceof Problem);
      assert.equal(error.code, 'service_unavailable');
      assert.equal((error.cause as Error).message, 'the request exceeded its deadline');
      return ctx.state.timedOut === true;
    });
    release();
    // The late error is handled: as an unhandled rejection it would end the process.
    await delay(1);
    assert.deepEqual(begun, ['first']);
  });
});
