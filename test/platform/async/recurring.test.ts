import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { recurring } from '../../../src/platform/async/recurring.js';

describe('recurring work', () => {
  /** The pauses that were begun, in milliseconds, and what ends each. */
  let pauses: { readonly end: () => void; readonly ms: number }[];
  let begun: number;
  let finish: () => void;

  beforeEach(() => {
    [pauses, begun] = [[], 0];
    mock.method(globalThis, 'setTimeout', (end: () => void, ms: number) => void pauses.push({ end, ms }));
  });

  afterEach(() => mock.restoreAll());

  const act = (): Promise<void> => {
    begun += 1;
    return new Promise((resolve) => (finish = resolve));
  };

  it('each pause of recurring work is up to a fifth longer or shorter than the interval, by chance', async () => {
    for (const chance of [0, 0.5, 0.75]) {
      mock.method(Math, 'random', () => chance);
      await recurring(act, 1_000).stop();
    }
    assert.deepEqual(
      pauses.map(({ ms }) => Math.round(ms)),
      [800, 1_000, 1_100],
    );
  });

  it('recurring work pauses once a run has ended, and ends when it is stopped, after the run in progress', async () => {
    const work = recurring(act, 1_000);
    for (let run = 1; run <= 2; run += 1) {
      pauses.shift()?.end();
      assert.deepEqual([begun, pauses.length], [run, 0]);
      if (run === 2) break;
      finish();
      await setImmediate();
      assert.equal(pauses.length, 1);
    }
    let hasStopped = false;
    const stopped = work.stop().then(() => (hasStopped = true));
    await setImmediate();
    assert.equal(hasStopped, false);
    finish();
    await stopped;
    assert.deepEqual([begun, pauses.length], [2, 0]);
  });
});
