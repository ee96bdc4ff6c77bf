import assert from 'node:assert/strict';
import { CallerCache } from '../../src/admission/caller-cache.js';
import type { Caller } from '../../src/admission/callers.js';
import { eachCase } from '../support/each-case.js';

const CALLER: Caller = {
  keyId: 1,
  keyPrefix: 'svc_00000000',
  developerId: 1,
  projectName: 'P',
  attributionRequired: false,
  plan: { id: 'free', name: 'Free', requestsPerMinute: 60, requestsPerDay: 100, commercialUse: false },
  expiresAt: Infinity,
};

describe('the cache of callers', () => {
  let cache: CallerCache;

  beforeEach(() => {
    cache = new CallerCache();
    cache.open();
    cache.replaceEpoch(undefined, 'first');
  });

  it('the cache finds a copy of a record by its whole hash, with its epoch', () => {
    cache.keep(cache.generation, 'ab', CALLER);
    const found = cache.get('ab');
    assert.deepEqual(found, { caller: CALLER, epoch: 'first' });
    assert.notEqual(found.caller.plan, CALLER.plan);
    for (const other of ['a', 'ac']) assert.equal(cache.get(other), undefined);
  });

  it('the cache keeps nothing without an epoch, nor before it is open', () => {
    const closed = new CallerCache();
    closed.replaceEpoch(undefined, 'first');
    closed.keep(closed.generation, 'a', CALLER);
    assert.deepEqual([closed.epoch, closed.size], [undefined, 0]);
    closed.open();
    closed.keep(closed.generation, 'a', CALLER);
    assert.equal(closed.size, 0);
  });

  it('the cache replaces the epoch that a request has seen end, and no later one', () => {
    cache.keep(cache.generation, 'a', CALLER);
    cache.replaceEpoch('another', 'third');
    assert.equal(cache.get('a')?.epoch, 'first');
    cache.replaceEpoch('first', 'second');
    assert.deepEqual([cache.epoch, cache.size], ['second', 0]);
    cache.replaceEpoch('second', '');
    assert.equal(cache.epoch, undefined);
  });

  const CHANGES: Readonly<Record<string, () => void>> = {
    'a change was announced': () => cache.clear(),
    'Redis or the primary was lost': () => cache.reset(),
    'the announcements were lost': () => cache.close(),
    'the epoch ended': () => cache.replaceEpoch('first', ''),
    'another epoch began': () => cache.replaceEpoch('first', 'second'),
    'the first epoch returned after another': () => {
      cache.replaceEpoch('first', 'second');
      cache.replaceEpoch('second', 'first');
    },
  };
  it('the cache keeps no record after a change, whether it was read before or was being read', () =>
    eachCase(Object.entries(CHANGES), ([, happens]) => {
      cache.close();
      cache.open();
      cache.replaceEpoch(undefined, 'first');
      const { generation } = cache;
      cache.keep(generation, 'a', CALLER);
      assert.equal(cache.size, 1);
      happens();
      cache.keep(generation, 'b', CALLER);
      assert.deepEqual([cache.get('a'), cache.get('b'), cache.size], [undefined, undefined, 0]);
    }));
});
