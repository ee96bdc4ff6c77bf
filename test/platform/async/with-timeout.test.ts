import assert from 'node:assert/strict';
import { withTimeout } from '../../../src/platform/async/with-timeout.js';

/** A query of Knex in short: it runs each time that it is waited for. */
class Query {
  runs = 0;

  constructor(private readonly outcome: Promise<string>) {}

  then(...handlers: Parameters<Promise<string>['then']>): Promise<unknown> {
    this.runs += 1;
    return this.outcome.then(...handlers);
  }
}

describe('a bounded wait', () => {
  it('a bounded wait passes on the result, and runs a query once, also one that fails', async () => {
    const served = new Query(Promise.resolve('ok'));
    assert.equal(await withTimeout(served as unknown as Promise<string>, 1_000), 'ok');
    const failing = new Query(Promise.reject(new Error('refused')));
    await assert.rejects(withTimeout(failing as unknown as Promise<string>, 1_000), /^Error: refused$/);
    assert.deepEqual([served.runs, failing.runs], [1, 1]);
  });

  it('a bounded wait leaves no timer behind, whether its reply is a result or an error', async () => {
    const count = (): number => process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;
    // Mocha starts a timer of its own for a test that waits.
    await new Promise(setImmediate);
    const before = count();
    await withTimeout(Promise.resolve(), 600_000);
    await assert.rejects(withTimeout(Promise.reject(new Error('refused')), 600_000));
    assert.equal(count(), before);
  });

  it('a bounded wait ends with its own error or that of the caller when no reply arrives', async () => {
    const never = new Promise<never>(() => undefined);
    await assert.rejects(withTimeout(never, 5), /^Error: no reply within 5 ms$/);
    await assert.rejects(
      withTimeout(never, 5, () => new RangeError('mine')),
      /^RangeError: mine$/,
    );
  });

  it('a bounded wait takes a reply that had arrived by the time that the bound was noticed', async () => {
    const reply = new Promise<string>((resolve) => {
      setTimeout(resolve, 2, 'just in time');
    });
    const waiting = withTimeout(reply, 1);
    const busyUntil = performance.now() + 20;
    while (performance.now() < busyUntil);
    assert.equal(await waiting, 'just in time');
  });
});
