import assert from 'node:assert/strict';
import { SteadyClock } from '../../../src/platform/time/steady-clock.js';

describe('a steady clock', () => {
  let timeOfDay: number;
  let monotonic: number;
  let clock: SteadyClock;

  beforeEach(() => {
    timeOfDay = 1_000_000;
    monotonic = 500;
    clock = new SteadyClock(
      () => timeOfDay,
      () => monotonic,
    );
  });

  function pass(ms: number): void {
    timeOfDay += ms;
    monotonic += ms;
  }

  it('a steady clock runs as fast as time', () => {
    const start = clock.now();
    pass(250);
    assert.equal(clock.now() - start, 250);
  });

  it('a steady clock continues when the time of day is set back', () => {
    const start = clock.now();
    timeOfDay -= 3_600_000;
    pass(250);
    assert.equal(clock.now() - start, 250);
  });

  it('a steady clock counts the time in which the machine was suspended', () => {
    const start = clock.now();
    // The monotonic clock stood still.
    timeOfDay += 3_600_000;
    pass(250);
    assert.equal(clock.now() - start, 3_600_250);
  });

  it('a steady clock does not go back when the time of day is set ahead and back again', () => {
    const start = clock.now();
    timeOfDay += 3_600_000;
    assert.equal(clock.now() - start, 3_600_000);
    timeOfDay -= 3_600_000;
    pass(250);
    assert.equal(clock.now() - start, 3_600_250);
  });
});
