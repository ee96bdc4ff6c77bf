import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { Problem } from '../../../src/errors.js';
import { deadline } from '../../../src/http/request/deadline.js';
import { contextOf } from '../../support/http/context.js';

describe('the deadline of a request', () => {
  it('does not touch a request whose later stages are in time', async () => {
    const ctx = contextOf();
    await deadline(500)(ctx, () => delay(1));
    await delay(600);
    assert.equal(ctx.state.timeUp, undefined);
  });

  it('passes on the error of a later stage', async () => {
    const broken = new Error('broken');
    await assert.rejects(
      deadline()(contextOf(), () => Promise.reject(broken)),
      (error) => error === broken,
    );
  });

  it('throws service_unavailable when the time is up, and keeps later stages from beginning', async () => {
    const ctx = contextOf();
    const begun: string[] = [];
    let goOn: () => void = () => undefined;
    const first = new Promise<void>((resolve) => (goOn = resolve));
    const answered = deadline(20)(ctx, async () => {
      begun.push('first');
      await first;
      if (ctx.state.timeUp) throw ctx.state.timeUp;
      begun.push('second');
    });
    await assert.rejects(answered, (error) => {
      assert.ok(error instanceof Problem);
      assert.equal(error.code, 'service_unavailable');
      assert.equal((error.cause as Error).message, 'the deadline of the request passed');
      return error === ctx.state.timeUp;
    });
    goOn();
    // The error of the stage that ends late reaches nobody: as an unhandled rejection it would end the process.
    await delay(1);
    assert.deepEqual(begun, ['first']);
  });
});
