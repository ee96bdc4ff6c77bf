import assert from 'node:assert/strict';
import { access } from 'node:fs/promises';
import { ROOT } from '../support/guides.js';
import { plant } from './fault.js';
import { FAULTS } from './faults/index.js';

describe('the table of faults', () => {
  it('has at least 80 faults, each under a name of its own', () => {
    assert.ok(FAULTS.length >= 80, `${FAULTS.length} faults`);
    const names = FAULTS.map(({ name }) => name);
    assert.deepEqual([...new Set(names)], names);
  });

  it('fits the code: each fault still applies, and names suites that exist', async () => {
    for (const fault of FAULTS) {
      await plant(fault, ROOT);
      for (const suite of fault.suites) await access(new URL(suite, ROOT));
    }
  });
});
