import assert from 'node:assert/strict';
import { cached } from '../../../src/platform/async/cached.js';
import { shareWhilePending } from '../../../src/platform/async/share-while-pending.js';

/** The ways to share a run, and how often three calls in turn start one. */
const WAYS: readonly (readonly [name: string, share: typeof shareWhilePending, runs: number])[] = [
  ['a cached value', (run) => cached(run, Infinity), 1],
  ['a run that is shared while it is pending', shareWhilePending, 3],
];

describe('values that calls share', () => {
  for (const [name, share, expected] of WAYS) {
    it(`${name} is made once for concurrent calls, and again after a failure, which they share too`, async () => {
      let runs = 0;
      let isBroken = true;
      const value = share(async () => {
        runs += 1;
        await Promise.resolve();
        if (isBroken) throw new Error('broken');
        return runs;
      });
      for (const failed of [1, 2]) {
        await Promise.all([assert.rejects(value(), /broken/), assert.rejects(value(), /broken/)]);
        assert.equal(runs, failed);
      }
      isBroken = false;
      assert.deepEqual(await Promise.all([value(), value()]), [3, 3]);
      await value();
      await value();
      assert.equal(runs, 2 + expected);
    });
  }

  it('a cached value is made again once it has expired', async () => {
    let time = 0;
    let made = 0;
    const value = cached(
      () => (made += 1),
      100,
      () => time,
    );
    assert.equal(await value(), 1);
    time = 99;
    assert.equal(await value(), 1);
    time = 100;
    assert.equal(await value(), 2);
  });
});
