import assert from 'node:assert/strict';
import { DecisionCounts } from '../../../src/admission/charge/limiter.js';
import type { Quota } from '../../../src/limits/quotas.js';

describe('the counts of decisions', () => {
  it('are of the requests that were served and that were refused, and each result is returned', () => {
    const counts = new DecisionCounts();
    const quota: Quota = { name: 'minute', limit: 60, windowSeconds: 60, remaining: 0, resetSeconds: 1 };
    const served = { quotas: [quota], violated: [] };
    const refused = { quotas: [quota], violated: [quota] };
    assert.deepEqual([counts.served, counts.refused], [0, 0]);
    assert.equal(counts.count(served), served);
    assert.deepEqual([counts.served, counts.refused], [1, 0]);
    assert.equal(counts.count(refused), refused);
    assert.equal(counts.count(refused), refused);
    assert.deepEqual([counts.served, counts.refused], [1, 2]);
  });
});
