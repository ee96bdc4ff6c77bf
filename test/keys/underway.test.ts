import assert from 'node:assert/strict';
import { Underway } from '../../src/keys/underway.js';

describe('readings that are under way', () => {
  /** Digests whose places are few: many share one. */
  const DIGESTS = Array.from({ length: 300 }, (_, i) => `${'ABC'[i % 3] ?? ''}${i}`);

  it('are found until they end, in whatever way and order', async () => {
    const underway = new Underway();
    const ends = new Map<string, (isFailed: boolean) => void>();
    for (const digest of DIGESTS) {
      underway.add(
        digest,
        new Promise<void>((resolve, reject) => {
          ends.set(digest, (isFailed) => (isFailed ? reject(new Error('no')) : resolve()));
        }),
      );
    }
    const isUnderway = (digest: string) => underway.get(digest) !== undefined;
    assert.ok(DIGESTS.every(isUnderway));
    assert.equal(underway.get('A'), undefined);
    // From the middle, from the end and from the beginning of a place.
    const order = [...DIGESTS].sort(
      (a, b) => ((Number(a.slice(1)) * 7919) % 300) - ((Number(b.slice(1)) * 7919) % 300),
    );
    for (const [i, digest] of order.entries()) {
      const ended = underway.get(digest);
      ends.get(digest)?.(i % 2 === 0);
      // Never fails: whoever waits only wants to know when.
      await ended;
      assert.deepEqual(
        DIGESTS.filter(isUnderway),
        DIGESTS.filter((one) => order.indexOf(one) > i),
      );
    }
  });
});
