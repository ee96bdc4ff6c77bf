import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { Problem } from '../../../src/errors.js';
import { getMe } from '../../../src/api/getMe.js';
import { deadline } from '../../../src/http/request/deadline.js';
import { sendAnswers } from '../../../src/http/response/answers.js';
import { contextOf } from '../../support/http/context.js';

describe('the deadline of a request', () => {
  it('a request whose stages are in time is not touched', async () => {
    const ctx = contextOf();
    await deadline(20)(ctx, () => Promise.resolve());
    await delay(60);
    assert.equal(ctx.state.timedOut, undefined);
  });

  it('the error of a later stage is thrown', async () => {
    const broken = new Error('broken');
    await assert.rejects(
      deadline(60_000)(contextOf(), () => Promise.reject(broken)),
      (error) => error === broken,
    );
  });

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

  it('a late answer does not replace that of the deadline', async () => {
    const ctx = contextOf();
    let answer: () => void = () => undefined;
    const operation = new Promise<void>((resolve) => (answer = resolve));
    let later: Promise<void> | undefined;
    const answered = deadline(20)(ctx, () => {
      later = sendAnswers(ctx, async () => {
        await operation;
        Object.assign(ctx.state, { operation: getMe, answer: { data: 'late' } });
      });
      return later;
    });
    await assert.rejects(answered, { code: 'service_unavailable' });
    answer();
    await later;
    assert.equal(ctx.body, undefined);
  });
});
