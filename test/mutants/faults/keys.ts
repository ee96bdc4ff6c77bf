import type { Fault } from '../fault.js';

/** Faults in what decides whether a key works. */
export const KEYS_FAULTS: readonly Fault[] = [
  {
    name: 'part-of-hash-in-cache',
    promise: 'A cached caller is found by the hash of the whole key.',
    edits: [
      {
        file: 'src/admission/caller-cache.ts',
        from: 'const caller = this.#records.get(hash);',
        to: 'const caller = this.#records.get(hash.slice(0, 1));',
      },
      {
        file: 'src/admission/caller-cache.ts',
        from: 'this.#records.set(hash, structuredClone(caller));',
        to: 'this.#records.set(hash.slice(0, 1), structuredClone(caller));',
      },
    ],
    suites: ['test/admission/caller-cache.test.ts'],
  },
  {
    name: 'two-of-three-keys',
    promise: 'Keys in three places must all be the same.',
    edits: [
      {
        file: 'src/http/request/authenticate.ts',
        from: 'keys.every((other) => other === key)',
        to: '(keys[1] ?? key) === key',
      },
    ],
    suites: ['test/api/authentication.test.ts'],
  },
  {
    name: 'last-of-three-keys',
    promise: 'Keys in three places must all be the same.',
    edits: [
      {
        file: 'src/http/request/authenticate.ts',
        from: 'keys.every((other) => other === key)',
        to: 'keys.at(-1) === key',
      },
    ],
    suites: ['test/api/authentication.test.ts'],
  },
  {
    name: 'scheme-in-capitals',
    promise: 'A key is taken in the letters it was made in.',
    edits: [
      {
        file: 'src/http/request/authenticate.ts',
        from: "{ kind: 'key', key } :",
        to: "{ kind: 'key', key: key.replace(/^svc/i, 'svc') } :",
      },
    ],
    suites: ['test/api/authentication.test.ts'],
  },
  {
    name: 'format-in-any-letters',
    promise: 'A key is taken in the letters it was made in.',
    edits: [
      {
        file: 'src/keys/api-key.ts',
        from: '[0-9A-Za-z]{32}[0-9A-Za-z]{6}$/;',
        to: '[0-9A-Za-z]{32}[0-9A-Za-z]{6}$/i;',
      },
    ],
    suites: ['test/keys/api-key.test.ts'],
  },
  {
    name: 'recently-used-is-trusted',
    promise: 'A revoked key fails on the very next request.',
    edits: [
      {
        file: 'src/admission/admission.ts',
        from: '    const charge = await limiter.chargeUnder(epoch, caller);',
        to: `    const isRecent = performance.now() - (usedAt.get(caller.keyId) ?? 0) < 20;
    const charge = isRecent ? await limiter.charge(caller) : await limiter.chargeUnder(epoch, caller);
    if (charge.kind !== 'unconfirmed') usedAt.set(caller.keyId, performance.now());`,
      },
      {
        file: 'src/admission/admission.ts',
        from: '  return async (hash) => {',
        to: `  const usedAt = new Map<number, number>();
  return async (hash) => {`,
      },
    ],
    suites: ['test/admission/admission.test.ts'],
  },
  {
    name: 'any-place-of-a-key-wins',
    promise: 'A request with two different keys is refused.',
    edits: [
      {
        file: 'src/http/request/authenticate.ts',
        from: 'authorizations.length > 1 || headers.length > 1 || queries.length > 1',
        to: 'authorizations.length > 1 || headers.length > 1',
      },
    ],
    suites: ['test/api/authentication.test.ts'],
  },
  {
    name: 'revoked-in-database-works',
    promise: 'A revoked key fails on the very next request.',
    edits: [
      {
        file: 'src/admission/callers.ts',
        from: `      and k.revoked_at is null
`,
        to: '',
      },
    ],
    suites: ['test/api/authentication.test.ts'],
  },
  {
    name: 'suspended-developer-works',
    promise: 'A key of a suspended developer fails.',
    edits: [{ file: 'src/admission/callers.ts', from: '      and d.suspended_at is null', to: '' }],
    suites: ['test/api/authentication.test.ts', 'test/api/operations.test.ts'],
  },
  {
    name: 'hash-of-the-prefix',
    promise: 'A key is found by the whole of it, not by its prefix.',
    edits: [
      {
        file: 'src/keys/api-key.ts',
        from: "hash: hash('sha256', key, 'buffer')",
        to: "hash: hash('sha256', prefix, 'buffer')",
      },
      {
        file: 'src/keys/api-key.ts',
        from: "(hash('sha256', text, 'base64') as KeyHash)",
        to: "(hash('sha256', text.slice(0, 12), 'base64') as KeyHash)",
      },
    ],
    suites: ['test/api/authentication.test.ts'],
  },
  {
    name: 'loads-remember',
    promise: 'A key that is revoked fails from the next request on: loads remember nothing.',
    edits: [
      {
        file: 'src/platform/async/batch-loader.ts',
        from: 'cache: false,',
        to: 'cache: true, cacheKeyFn: (key) => ((key as { hash?: unknown }).hash ?? key) as Key,',
      },
    ],
    suites: ['test/admission/callers.test.ts', 'test/api/authentication.test.ts', 'test/keys/keys.test.ts'],
  },
  {
    name: 'loads-take-all-connections',
    promise: 'A flood of unknown keys leaves connections to valid callers.',
    edits: [
      { file: 'src/platform/async/semaphore.ts', from: 'if (this.#free > 0)', to: 'if (this.#free > -1_000_000)' },
    ],
    suites: ['test/admission/callers.test.ts', 'test/admission/admission.test.ts'],
  },
  {
    name: 'callers-by-place',
    promise: 'Each request gets its own caller, also where loads of its batch were given up.',
    edits: [
      {
        file: 'src/admission/callers.ts',
        from: 'queuedAt >= oldest ? callers.get(hash) :',
        to: "queuedAt >= oldest ? callers.get(due[loads.findIndex((it) => it.hash === hash)] ?? '') :",
      },
    ],
    suites: ['test/admission/callers.test.ts'],
  },
  {
    name: 'late-load-answers',
    promise: 'A load that waited longer than its request is given up.',
    edits: [
      {
        file: 'src/admission/callers.ts',
        from: 'const oldest = performance.now() - MAX_WAIT_MS;',
        to: 'const oldest = 0;',
      },
    ],
    suites: ['test/admission/callers.test.ts'],
  },
  {
    name: 'epoch-not-ended',
    promise: 'Records of an ended epoch are never used again.',
    edits: [
      {
        file: 'src/admission/admission.ts',
        from: `    noteEpoch(epoch, charge.epoch);
    return admitFromDatabase`,
        to: '    return admitFromDatabase',
      },
    ],
    suites: ['test/admission/admission.test.ts'],
  },
  {
    name: 'epoch-read-after-database',
    promise: 'A record is kept under the epoch from before it was read.',
    edits: [
      {
        file: 'src/admission/admission.ts',
        from: 'cache.keep(generation, hash, caller);',
        to: 'cache.keep(generation && cache.generation, hash, caller);',
      },
    ],
    suites: ['test/admission/event-orders.test.ts'],
  },
  {
    name: 'ended-epoch-unnoticed-by-fresh-record',
    promise: 'A request that has read its caller from the database notices that the epoch has ended.',
    edits: [
      {
        file: 'src/admission/admission.ts',
        from: `    noteEpoch(epoch, charge.epoch);
    fence.confirm`,
        to: `    if (epoch === undefined) noteEpoch(epoch, charge.epoch);
    fence.confirm`,
      },
    ],
    suites: ['test/admission/admission.test.ts'],
  },
  {
    name: 'change-while-a-record-is-read',
    promise: 'A record that was being read when a change was announced is not kept.',
    edits: [{ file: 'src/admission/caller-cache.ts', from: ' || generation !== this.#generation', to: '' }],
    suites: ['test/admission/event-orders.test.ts', 'test/admission/caller-cache.test.ts'],
  },
  {
    name: 'later-epoch-replaced',
    promise: 'A late reply from Redis does not bring an ended epoch back.',
    edits: [
      {
        file: 'src/admission/caller-cache.ts',
        from: 'this.#isOpen && ended === this.#epoch',
        to: 'this.#isOpen',
      },
    ],
    suites: ['test/admission/caller-cache.test.ts'],
  },
  {
    name: 'checksum-ignored',
    promise: 'A key with a wrong checksum is refused before the database is asked.',
    edits: [
      { file: 'src/keys/api-key.ts', from: ' && text.endsWith(checksum(text.slice(0, -CHECKSUM_LENGTH)))', to: '' },
    ],
    suites: ['test/keys/api-key.test.ts'],
  },
  {
    name: 'two-proxies-as-one',
    promise: 'Failing keys are counted by the client that the trusted proxies saw.',
    edits: [
      {
        file: 'src/http/request/authenticate.ts',
        from: 'clientAddress(ctx.req, parts.trustedProxies)',
        to: 'clientAddress(ctx.req, Math.min(parts.trustedProxies, 1))',
      },
    ],
    suites: ['test/limits/failed-attempts.test.ts'],
  },
];
