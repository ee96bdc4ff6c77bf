import type { Fault } from '../fault.js';

/** Faults in what counts requests and refuses them. */
export const LIMITS_FAULTS: readonly Fault[] = [
  {
    name: 'limit-off-by-one',
    promise: 'A plan of n requests serves n.',
    edits: [
      {
        file: 'src/admission/charge/redis.ts',
        from: 'if counts[i] >= tonumber(ARGV[arg + i])',
        to: 'if counts[i] > tonumber(ARGV[arg + i])',
      },
    ],
    suites: ['test/admission/charge/redis.test.ts', 'test/limits/rate-limits.test.ts'],
  },
  {
    name: 'window-never-ends',
    promise: 'A counter ends with its window.',
    edits: [
      {
        file: 'src/admission/charge/redis.ts',
        from: "redis.call('set', KEYS[key + i], 1, 'px', left[i])",
        to: "redis.call('set', KEYS[key + i], 1)",
      },
    ],
    suites: ['test/admission/charge/redis.test.ts'],
  },
  {
    name: 'clock-set-back',
    promise: 'A clock that was set back makes no window longer.',
    edits: [{ file: 'src/admission/charge/redis.ts', from: 'if left[i] > window then', to: 'if false then' }],
    suites: ['test/admission/charge/redis.test.ts'],
  },
  {
    name: 'charged-when-epoch-ended',
    promise: 'A request is not charged when its precondition fails.',
    edits: [
      {
        file: 'src/admission/charge/redis.ts',
        from: "if ARGV[arg] ~= '' and ARGV[arg] ~= epoch then charge = -1 end",
        to: '',
      },
    ],
    suites: ['test/admission/charge/redis.test.ts', 'test/admission/admission.test.ts'],
  },
  {
    name: 'refused-request-charges',
    promise: 'A quota that refuses costs nothing of the other.',
    edits: [
      {
        file: 'src/admission/charge/memory.ts',
        from: "kind === 'refused' ? found :",
        to: 'exhausted(found).length > 1 ? found :',
      },
    ],
    suites: ['test/admission/charge/limiters.test.ts', 'test/limits/rate-limits.test.ts'],
  },
  {
    name: 'counted-per-plan-alone',
    promise: 'Limits count per developer and plan.',
    edits: [
      {
        file: 'src/admission/charge/memory.ts',
        from: 'const key = `${developerId}:${plan.id}`;',
        to: 'const key = plan.id;',
      },
    ],
    suites: ['test/admission/charge/limiters.test.ts', 'test/limits/rate-limits.test.ts'],
  },
  {
    name: 'counted-per-developer-alone',
    promise: 'Limits count per developer and plan.',
    edits: [
      {
        file: 'src/admission/charge/redis.ts',
        from: "return redisKey('count', name, developerId, plan.id);",
        to: "return redisKey('count', name, developerId);",
      },
    ],
    suites: ['test/admission/charge/redis.test.ts'],
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
    name: 'batch-under-first-precondition',
    promise: 'Each request of a batch is charged on its own precondition.',
    edits: [
      {
        file: 'src/admission/charge/redis.ts',
        from: "values.push(epoch ?? '');",
        to: "values.push(requests[0]?.epoch ?? epoch ?? '');",
      },
    ],
    suites: ['test/admission/charge/redis.test.ts'],
  },
  {
    name: 'failures-never-over',
    promise: 'More than 30 failing keys from one address get 429.',
    edits: [
      {
        file: 'src/limits/failed-attempts.ts',
        from: "if (msToWait === 0) return { kind: 'within_limit' };",
        to: "if (msToWait >= 0) return { kind: 'within_limit' };",
      },
    ],
    suites: ['test/limits/failed-attempts.test.ts'],
  },
  {
    name: 'failures-of-everybody',
    promise: 'Failing keys are counted by address.',
    edits: [
      {
        file: 'src/limits/failed-attempts.ts',
        from: 'await limiter.consume(address);',
        to: "await limiter.consume(address && 'all');",
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
