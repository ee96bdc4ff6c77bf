import assert from 'node:assert/strict';
import { Metrics } from '../../../src/platform/telemetry/metrics.js';

describe('metrics', () => {
  it('a metric that cannot be read, or not in time, is left out, and the others are there', async () => {
    const metrics = new Metrics();
    const reads = {
      works: () => 2,
      fails: () => Promise.reject(new Error('the database is lost')),
      throws: () => {
        throw new Error('at once');
      },
      hangs: () => new Promise<number>(() => undefined),
    };
    for (const [name, read] of Object.entries(reads)) metrics.readGauge({ name, help: name, read });
    const samples = (await metrics.text()).split('\n').filter((line) => /^\w/.test(line));
    assert.deepEqual(samples, ['works 2']);
  });
});
