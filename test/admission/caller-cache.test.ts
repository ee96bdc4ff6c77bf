import assert from 'node:assert/strict';
import { CallerCache, LEASE_MS } from '../../src/admission/caller-cache.js';
import type { Caller } from '../../src/admission/callers.js';
import type { Version } from '../../src/admission/versions.js';
import { SteadyClock } from '../../src/platform/time/steady-clock.js';
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

const OTHER: Caller = { ...CALLER, keyId: 2, developerId: 2 };

const version = (token: string, session = 1): Version => ({ token, session });

describe('the cache of callers', () => {
  let cache: CallerCache;
  /** In milliseconds. Only the time of day passes while the machine sleeps. */
  const time = { ofDay: 0, running: 0 };
  const clock = new SteadyClock(
    () => time.ofDay,
    () => time.running,
  );
  const pass = (ms: number, isAsleep = false): void => {
    time.ofDay += ms;
    if (!isAsleep) time.running += ms;
  };

  /** Keeps a caller under the hash that is the id of its key, as read now. */
  const keep = (caller = CALLER): void => cache.keep(cache.learned, String(caller.keyId), caller);
  const find = (caller = CALLER): string | undefined => cache.get(String(caller.keyId))?.version.token;

  beforeEach(() => {
    cache = new CallerCache(clock);
    cache.looked([0], clock.now());
    cache.learn(1, version('first'));
    cache.learn(2, version('of another'));
  });

  it('the cache finds a copy of a record by its whole hash, with its version', () => {
    cache.keep(cache.learned, 'ab', CALLER);
    const found = cache.get('ab') ?? assert.fail();
    const { version: under, ...caller } = found;
    assert.deepEqual([caller, under.token, under.session], [CALLER, 'first', 1]);
    assert.notEqual(caller.plan, CALLER.plan);
    for (const other of ['a', 'ac']) assert.equal(cache.get(other), undefined);
  });

  it('the cache keeps nothing without a version of its developer, nor before it is open', () => {
    const closed = new CallerCache(clock);
    closed.learn(1, version('first'));
    closed.keep(closed.learned, 'a', CALLER);
    assert.equal(closed.get('a'), undefined);
    closed.looked([0], clock.now());
    closed.keep(closed.learned, 'a', CALLER);
    closed.learn(2, version('of another'));
    closed.keep(closed.learned, 'a', CALLER);
    assert.equal(closed.size, 0);
    closed.learn(1, version('first'));
    closed.keep(closed.learned, 'a', CALLER);
    assert.equal(closed.get('a')?.version.token, 'first');
  });

  it('the same version, learned again, changes nothing', () => {
    const { learned } = cache;
    keep();
    cache.learn(1, version('first'));
    assert.deepEqual([find(), cache.learned], ['first', learned]);
  });

  const CHANGES: Readonly<Record<string, () => void>> = {
    'a change was announced': () => cache.looked([1], clock.now()),
    'a change was announced, and the version learned again': () => {
      cache.looked([2, 1], clock.now());
      cache.learn(1, version('first'));
    },
    'the primary was lost': () => cache.clear(),
    'a change of every developer was announced': () => cache.looked([0], clock.now()),
    'a change of every developer was announced, and the version learned again': () => {
      cache.looked([0], clock.now());
      cache.learn(1, version('first'));
    },
    'the version ended': () => cache.learn(1, version('')),
    'another version began': () => cache.learn(1, version('second')),
    'the same version was read over another connection': () => cache.learn(1, version('first', 2)),
    'the first version returned after another': () => {
      cache.learn(1, version('second'));
      cache.learn(1, version('first'));
    },
  };
  it('the cache keeps no record of a developer after a change, whether it was read before or was being read', () =>
    eachCase(Object.entries(CHANGES), ([, happens]) => {
      cache.looked([0], clock.now());
      cache.learn(1, version('first'));
      const { learned } = cache;
      keep();
      assert.equal(find(), 'first');
      happens();
      cache.keep(learned, 'being read', CALLER);
      assert.deepEqual([find(), cache.get('being read')], [undefined, undefined]);
    }));

  it('the cache keeps the records of every other developer', () => {
    const { learned } = cache;
    keep(OTHER);
    for (const happens of [() => cache.looked([1], clock.now()), () => cache.learn(1, version('second'))]) {
      happens();
      cache.keep(learned, 'being read', OTHER);
      assert.deepEqual([find(OTHER), cache.get('being read')?.keyId], ['of another', OTHER.keyId]);
    }
  });

  it('a look opens the cache for a lease from the beginning of the look, not from its end', () => {
    keep();
    const beganAt = clock.now();
    pass(LEASE_MS - 1);
    cache.looked([], beganAt);
    assert.deepEqual([find(), cache.isOpen], ['first', true]);
    pass(1);
    assert.deepEqual([find(), cache.isOpen], [undefined, false]);
  });

  it('the lease also runs while the machine sleeps', () => {
    keep();
    pass(LEASE_MS, true);
    assert.equal(find(), undefined);
  });

  it('a look after the lease has run out finds every record as it was, except those of changes', () => {
    keep();
    keep(OTHER);
    pass(2 * LEASE_MS);
    assert.deepEqual([find(), find(OTHER)], [undefined, undefined]);
    cache.looked([1], clock.now());
    assert.deepEqual([find(), find(OTHER)], [undefined, 'of another']);
  });
});
