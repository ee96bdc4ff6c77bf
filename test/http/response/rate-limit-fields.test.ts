import assert from 'node:assert/strict';
import { rateLimitExceeded } from '../../../src/http/response/rate-limit-fields.js';
import type { Quota } from '../../../src/limits/quotas.js';

const MINUTE: Quota = { name: 'minute', limit: 60, windowSeconds: 60, remaining: 0, resetSeconds: 7 };
const DAY: Quota = { name: 'day', limit: 1_000, windowSeconds: 86_400, remaining: 940, resetSeconds: 3_601 };

describe('the problem of a used-up quota', () => {
  it('a refusal names the longest of the waits for its quotas, in any order', () => {
    for (const [violated, seconds] of [
      [[MINUTE, DAY], '3601'],
      [
        [
          { ...MINUTE, resetSeconds: 60 },
          { ...DAY, resetSeconds: 2 },
        ],
        '60',
      ],
    ] as const) {
      assert.deepEqual(rateLimitExceeded(violated).headers, { 'Retry-After': seconds });
    }
  });
});
