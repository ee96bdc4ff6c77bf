import assert from 'node:assert/strict';
import { Semaphore } from '../../../src/platform/async/semaphore.js';

describe('a semaphore', () => {
  it('a semaphore lets as many tasks run as it has permits, and the others in the order of their arrival', async () => {
    const semaphore = new Semaphore(2);
    const started: number[] = [];
    const tasks = [1, 2, 3, 4].map((task) => semaphore.acquire().then(() => started.push(task)));
    await Promise.all(tasks.slice(0, 2));
    await Promise.resolve();
    assert.deepEqual(started, [1, 2]);
    semaphore.release();
    await tasks[2];
    assert.deepEqual(started, [1, 2, 3]);
    semaphore.release();
    await tasks[3];
    // Nobody waits: both permits are free again.
    semaphore.release();
    semaphore.release();
    await Promise.all([semaphore.acquire(), semaphore.acquire()]);
  });

  it('owners take turns, however many tasks each has waiting', async () => {
    const semaphore = new Semaphore(1);
    await semaphore.acquire('a');
    const started: string[] = [];
    const tasks = ['a1', 'a2', 'a3', 'b1', 'b2', 'c1'].map(async (task) => {
      await semaphore.acquire(task.charAt(0));
      started.push(task);
      semaphore.release();
    });
    semaphore.release();
    await Promise.all(tasks);
    assert.deepEqual(started, ['a1', 'b1', 'c1', 'a2', 'b2', 'a3']);
  });
});
