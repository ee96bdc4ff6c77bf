import type { Fault } from '../fault.js';

/** Faults in what counts requests and refuses them. */
export const LIMITS_FAULTS: readonly Fault[] = [
  {
    name: 'limit-off-by-one',
    promise: 'A plan of n requests serves n.',
    edits: [
      {
        file: 'src/limits/charge-script.ts',
        from: 'room = math.max(0, math.min(room, limit - counts[i]))',
        to: 'room = math.max(0, math.min(room, limit - counts[i] + 1))',
      },
    ],
    suites: ['test/limits/redis-limiter.test.ts', 'test/limits/rate-limits.test.ts'],
  },
  {
    name: 'window-never-ends',
    promise: 'A counter ends with its window.',
    edits: [
      {
        file: 'src/limits/charge-script.ts',
        from: "redis.call('set', KEYS[key + i], room, 'px', left[i])",
        to: "redis.call('set', KEYS[key + i], room)",
      },
    ],
    suites: ['test/limits/redis-limiter.test.ts'],
  },
  {
    name: 'clock-set-back',
    promise: 'A clock that was set back makes no window longer.',
    edits: [{ file: 'src/limits/charge-script.ts', from: 'if left[i] > window then', to: 'if false then' }],
    suites: ['test/limits/redis-limiter.test.ts'],
  },
  {
    name: 'charged-when-epoch-ended',
    promise: 'A request is not charged where the condition does not hold.',
    edits: [
      { file: 'src/limits/charge-script.ts', from: "if not holds and ARGV[2] == '1' then return false end", to: '' },
    ],
    suites: ['test/limits/redis-limiter.test.ts', 'test/keys/admission.test.ts'],
  },
  {
    name: 'refused-request-charges',
    promise: 'A quota that refuses costs nothing of the other.',
    edits: [
      {
        file: 'src/limits/plan-limiter.ts',
        from: 'if (violated.length > 0) return this.decisions.count({ quotas: found, violated });',
        to: 'if (violated.length > 1) return this.decisions.count({ quotas: found, violated });',
      },
    ],
    suites: ['test/limits/plan-limiter.test.ts', 'test/limits/rate-limits.test.ts'],
  },
  {
    name: 'counted-per-plan-alone',
    promise: 'Limits count per developer and plan.',
    edits: [
      {
        file: 'src/limits/plan-limiter.ts',
        from: 'const key = `${String(developerId)}:${plan.id}`;',
        to: 'const key = plan.id;',
      },
    ],
    suites: ['test/limits/plan-limiter.test.ts', 'test/limits/rate-limits.test.ts'],
  },
  {
    name: 'counted-per-developer-alone',
    promise: 'Limits count per developer and plan.',
    edits: [
      {
        file: 'src/limits/redis-limiter.ts',
        from: "return redisKey('count', name, developerId, plan.id);",
        to: "return redisKey('count', name, developerId);",
      },
    ],
    suites: ['test/limits/redis-limiter.test.ts'],
  },
  {
    name: 'retry-after-too-short',
    promise: 'A client that waits Retry-After seconds is served.',
    edits: [
      {
        file: 'src/http/response/rate-limit-fields.ts',
        from: 'const seconds = Math.max(...violated.map(({ resetSeconds }) => resetSeconds));',
        to: 'const seconds = Math.min(...violated.map(({ resetSeconds }) => resetSeconds)) - 1;',
      },
    ],
    suites: ['test/limits/rate-limits.test.ts'],
  },
  {
    name: 'failures-never-over',
    promise: 'More than 30 failing keys from one address get 429.',
    edits: [{ file: 'src/limits/failed-attempts.ts', from: 'if (ms <= 0) return undefined;', to: 'return undefined;' }],
    suites: ['test/limits/failed-attempts.test.ts'],
  },
  {
    name: 'failures-of-everybody',
    promise: 'Failing keys are counted by address.',
    edits: [
      {
        file: 'src/limits/failed-attempts.ts',
        from: 'await this.#memory.consume(address);',
        to: "await this.#memory.consume('all');",
      },
    ],
    suites: ['test/limits/failed-attempts.test.ts'],
  },
  {
    name: 'leftmost-forwarded-address',
    promise: 'A client cannot choose its address by X-Forwarded-For.',
    edits: [
      {
        file: 'src/http/request/client-address.ts',
        from: 'forwarded.reverse().slice(0, trustedProxies)',
        to: 'forwarded.slice(0, trustedProxies)',
      },
    ],
    suites: ['test/http/request/client-address.test.ts', 'test/limits/failed-attempts.test.ts'],
  },
];
