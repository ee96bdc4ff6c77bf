import assert from 'node:assert/strict';
import { access } from 'node:fs/promises';
import { ROOT } from '../support/guides.js';
import { plant, readFaults } from './fault.js';

describe('the table of faults', () => {
  it('has at least 80 faults with different names', async () => {
    const names = (await readFaults()).map(({ name }) => name);
    assert.ok(names.length >= 80, `${names.length} faults`);
    assert.deepEqual([...new Set(names)], names);
  });

  it('fits the code: each fault applies and names suites that exist', async () => {
    for (const fault of await readFaults()) {
      await plant(fault, ROOT);
      for (const suite of fault.suites) await access(new URL(suite, ROOT));
    }
  });
});
