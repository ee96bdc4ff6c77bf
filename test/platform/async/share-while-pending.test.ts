import assert from 'node:assert/strict';
import { shareWhilePending } from '../../../src/platform/async/share-while-pending.js';

describe('sharing a run while it is pending', () => {
  it('concurrent calls share one run, and the next call starts another, also after a failure', async () => {
    let runs = 0;
    const share = shareWhilePending(async () => {
      runs += 1;
      await Promise.resolve();
      if (runs === 2) throw new Error('the second run fails');
      return runs;
    });
    assert.deepEqual(await Promise.all([share(), share()]), [1, 1]);
    const failed = await Promise.allSettled([share(), share()]);
    assert.deepEqual(
      failed.map(({ status }) => status),
      ['rejected', 'rejected'],
    );
    assert.equal(await share(), 3);
  });
});
