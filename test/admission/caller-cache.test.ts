import assert from 'node:assert/strict';
import { CallerCache } from '../../src/admission/caller-cache.js';
import type { Caller } from '../../src/admission/callers.js';
import type { Version } from '../../src/admission/versions.js';
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

  /** Keeps a caller under the hash that is the id of its key, as read now. */
  const keep = (caller = CALLER): void => cache.keep(cache.learned, String(caller.keyId), caller);
  const find = (caller = CALLER): string | undefined => cache.get(String(caller.keyId))?.version.token;

  beforeEach(() => {
    cache = new CallerCache();
    cache.open();
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
    const closed = new CallerCache();
    closed.learn(1, version('first'));
    closed.keep(closed.learned, 'a', CALLER);
    closed.open();
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
    'a change was announced': () => cache.drop(1),
    'a change was announced, and the version learned again': () => {
      cache.drop(1);
      cache.learn(1, version('first'));
    },
    'a change of every developer was announced, or the primary lost': () => cache.clear(),
    'the announcements were lost': () => cache.close(),
    'the announcements were lost, and are back': () => {
      cache.close();
      cache.open();
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
      cache.close();
      cache.open();
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
    for (const happens of [() => cache.drop(1), () => cache.learn(1, version('second'))]) {
      happens();
      cache.keep(learned, 'being read', OTHER);
      assert.deepEqual([find(OTHER), cache.get('being read')?.keyId], ['of another', OTHER.keyId]);
    }
  });
});
