import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { recurring } from '../../../src/platform/async/recurring.js';
import { eventually } from '../../support/eventually.js';

const INTERVAL_MS = 50;

describe('recurring work', () => {
  it('recurring work begins after pauses that differ, none shorter than four fifths of the interval', async () => {
    const times = [performance.now()];
    const work = recurring(() => {
      times.push(performance.now());
      return Promise.resolve();
    }, INTERVAL_MS);
    await eventually('it has been done often', () => times.length > 12);
    await work.stop();
    const pauses = times.slice(1).map((time, i) => time - (times[i] ?? 0));
    // Timers count whole milliseconds.
    assert.ok(Math.min(...pauses) >= INTERVAL_MS * 0.8 - 1, pauses.join(' '));
    assert.ok(Math.max(...pauses) - Math.min(...pauses) > 3, pauses.join(' '));
  });

  it('recurring work never runs twice at the same time, however long it takes', async () => {
    let running = 0;
    let acts = 0;
    const work = recurring(async () => {
      assert.equal((running += 1), 1);
      await delay(2 * INTERVAL_MS);
      running -= 1;
      acts += 1;
    }, INTERVAL_MS);
    await eventually('it has been done several times', () => acts === 3);
    await work.stop();
  });

  it('recurring work ends when it is stopped, after the run in progress', async () => {
    let begun = 0;
    let ended = 0;
    const work = recurring(async () => {
      begun += 1;
      await delay(INTERVAL_MS);
      ended += 1;
    }, INTERVAL_MS);
    await eventually('it has begun', () => begun === 1);
    await work.stop();
    assert.deepEqual([begun, ended], [1, 1]);
    await delay(3 * INTERVAL_MS);
    assert.equal(begun, 1);
  });
});
