import assert from 'node:assert/strict';
import { CallerCache, LEASE_MS } from '../../src/admission/caller-cache.js';
import type { Caller } from '../../src/admission/callers.js';
import type { Version } from '../../src/admission/versions.js';
import { Fence } from '../../src/platform/postgres/fence.js';
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
  let fence: Fence;
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
  const keep = (caller = CALLER): void => cache.begin(String(caller.keyId)).keep(caller);
  const find = (caller = CALLER): string | undefined => cache.get(String(caller.keyId))?.version.token;

  const learn = (developerId: number, it: Version, by = cache): void =>
    by.apply({ kind: 'version', developerId, version: it });
  const look = (changed: readonly number[], beganAt = clock.now(), by = cache): void =>
    by.apply({ kind: 'look', changed, beganAt });

  beforeEach(() => {
    fence = new Fence();
    fence.accept({ is_standby: false, is_read_only: false, system: '7', timeline: 1 });
    cache = new CallerCache(fence, clock);
    look([0]);
    learn(1, version('first'));
    learn(2, version('of another'));
  });

  it('the cache finds a copy of a record by its whole hash, with its version', () => {
    cache.begin('ab').keep(CALLER);
    const found = cache.get('ab') ?? assert.fail();
    const { version: under, ...caller } = found;
    assert.deepEqual([caller, under.token, under.session], [CALLER, 'first', 1]);
    assert.notEqual(caller.plan, CALLER.plan);
    for (const other of ['a', 'ac']) assert.equal(cache.get(other), undefined);
  });

  it('the cache keeps nothing without a version of its developer, nor before it is open', () => {
    const closed = new CallerCache(fence, clock);
    learn(1, version('first'), closed);
    closed.begin('a').keep(CALLER);
    assert.equal(closed.get('a'), undefined);
    look([0], clock.now(), closed);
    closed.begin('a').keep(CALLER);
    learn(2, version('of another'), closed);
    closed.begin('a').keep(CALLER);
    assert.equal(closed.size, 0);
    learn(1, version('first'), closed);
    closed.begin('a').keep(CALLER);
    assert.equal(closed.get('a')?.version.token, 'first');
  });

  it('the same version, learned again, changes nothing', () => {
    keep();
    const reading = cache.begin('being read');
    learn(1, version('first'));
    reading.keep(CALLER);
    assert.deepEqual([find(), cache.get('being read')?.keyId], ['first', CALLER.keyId]);
  });

  const CHANGES: Readonly<Record<string, () => void>> = {
    'a change was announced': () => look([1]),
    'a change was announced, and the version learned again': () => {
      look([2, 1]);
      learn(1, version('first'));
    },
    'another server became the primary': () => fence.observe({ system: '7', number: 2 }),
    'a version named a newer timeline': () => learn(1, version('7/2/first')),
    'a change of every developer was announced': () => look([0]),
    'a change of every developer was announced, and the version learned again': () => {
      look([0]);
      learn(1, version('first'));
    },
    'the version ended': () => learn(1, version('')),
    'another version began': () => learn(1, version('second')),
    'the same version was read over another connection': () => learn(1, version('first', 2)),
    'the first version returned after another': () => {
      learn(1, version('second'));
      learn(1, version('first'));
    },
  };
  it('the cache keeps no record of a developer after a change, whether it was read before or was being read', () =>
    eachCase(Object.entries(CHANGES), ([, happens]) => {
      look([0]);
      learn(1, version('first'));
      const reading = cache.begin('being read');
      keep();
      assert.equal(find(), 'first');
      happens();
      reading.keep(CALLER);
      assert.deepEqual([find(), cache.get('being read')], [undefined, undefined]);
    }));

  it('the cache keeps the records of every other developer', () => {
    const reading = cache.begin('being read');
    keep(OTHER);
    for (const happens of [() => look([1]), () => learn(1, version('second'))]) {
      happens();
      reading.keep(OTHER);
      assert.deepEqual([find(OTHER), cache.get('being read')?.keyId], ['of another', OTHER.keyId]);
    }
  });

  it('a look opens the cache for a lease from the beginning of the look, not from its end', () => {
    keep();
    const beganAt = clock.now();
    pass(LEASE_MS - 1);
    look([], beganAt);
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
    look([1]);
    assert.deepEqual([find(), find(OTHER)], [undefined, 'of another']);
  });
});
