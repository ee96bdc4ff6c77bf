import assert from 'node:assert/strict';
import { FailedAddresses } from '../../src/limits/failed-addresses.js';

const HOUR_MS = 3_600_000;

describe('the addresses whose keys failed', () => {
  it('addresses are counted in this hour and the one before, and listed by their number', () => {
    const startedAt = 1_000.1 * HOUR_MS;
    let now = startedAt;
    const addresses = new FailedAddresses(() => now);
    for (const address of ['192.0.2.1', '192.0.2.2', '192.0.2.2']) addresses.count(address);
    now += HOUR_MS;
    assert.equal(addresses.since, startedAt);
    addresses.count('192.0.2.1');
    addresses.count('192.0.2.1');
    assert.deepEqual(addresses.list(10), [
      { address: '192.0.2.1', failures: 3 },
      { address: '192.0.2.2', failures: 2 },
    ]);
    assert.deepEqual(addresses.list(1), [{ address: '192.0.2.1', failures: 3 }]);
    now += HOUR_MS;
    assert.equal(addresses.since, 1_001 * HOUR_MS);
    assert.deepEqual(addresses.list(10), [{ address: '192.0.2.1', failures: 2 }]);
  });

  it('no number of addresses fills the memory, and an address that fails often is kept', () => {
    const addresses = new FailedAddresses(() => HOUR_MS);
    for (let i = 0; i < 20_000; i += 1) {
      addresses.count(`192.0.${i}`);
      if (i % 1_000 === 0) addresses.count('198.51.100.1');
    }
    assert.deepEqual(addresses.list(1), [{ address: '198.51.100.1', failures: 20 }]);
    assert.equal(addresses.list(20_000).length, 10_000);
  });
});
