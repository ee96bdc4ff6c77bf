import assert from 'node:assert/strict';
import { hintsOf, stateOf, type KeyRecord, type Successor } from '../../src/keys/key-record.js';

const NOW = Date.parse('2026-06-01T00:00:00Z');
const SUCCESSOR: Successor = { prefix: 'svc_11111111', label: null, isActive: true, isRolled: false };
const ACTIVE: KeyRecord = {
  prefix: 'svc_00000000',
  developerId: 1,
  planId: 'free',
  label: null,
  createdAt: '2026-01-01T00:00:00.000000Z',
  lastUsedAt: '2026-05-31T00:00:00.000000Z',
  lastRefusedAt: null,
  expiresAt: null,
  successor: null,
  revokedAt: null,
  isExpired: false,
  isSuspended: false,
};

function at(days: number): string {
  return new Date(NOW + days * 86_400_000).toISOString();
}

describe('a key record', () => {
  it('a revoked key counts as revoked, and an expired one as expired, whether or not it was rolled', () => {
    const expired = { ...ACTIVE, expiresAt: at(-1), isExpired: true, successor: SUCCESSOR };
    assert.deepEqual(stateOf(ACTIVE), { kind: 'active' });
    assert.deepEqual(stateOf({ ...expired, isExpired: false }), {
      kind: 'rolled',
      until: at(-1),
      successor: SUCCESSOR,
    });
    assert.deepEqual(stateOf(expired), { kind: 'expired', at: at(-1) });
    assert.deepEqual(stateOf({ ...expired, revokedAt: at(0) }), { kind: 'revoked', at: at(0) });
  });

  it('an active key gets a hint that was not used for 90 days, or that expires within two weeks', () => {
    for (const [change, hints] of [
      [{ lastUsedAt: at(-89.9) }, []],
      [{ lastUsedAt: at(-90) }, [{ kind: 'unused', days: 90 }]],
      [{ lastUsedAt: null }, [{ kind: 'unused', days: 151 }]],
      [{ expiresAt: at(14) }, []],
      [{ expiresAt: at(13.9) }, [{ kind: 'expires_soon', days: 13 }]],
      [{ expiresAt: at(0.5) }, [{ kind: 'expires_soon', days: 0 }]],
      ...[{ successor: SUCCESSOR }, { revokedAt: at(-1) }, { isExpired: true }].map(
        (change) => [{ lastUsedAt: null, expiresAt: at(1), ...change }, []] as const,
      ),
    ] as const) {
      assert.deepEqual(hintsOf({ ...ACTIVE, ...change }, NOW), hints, JSON.stringify(change));
    }
  });
});
