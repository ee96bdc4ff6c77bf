import assert from 'node:assert/strict';
import { rateLimitExceeded, rateLimitFields } from '../../../src/http/response/rate-limit-fields.js';
import type { Quota } from '../../../src/limits/quotas.js';

const TYPE = 'https://iana.org/assignments/http-problem-types#quota-exceeded';

const MINUTE: Quota = { name: 'minute', limit: 60, windowSeconds: 60, remaining: 0, resetSeconds: 7 };
const DAY: Quota = { name: 'day', limit: 1_000, windowSeconds: 86_400, remaining: 940, resetSeconds: 3_601 };

describe('the fields of the rate limits', () => {
  it('the largest numbers of a plan have no exponent', () => {
    const most = { ...MINUTE, limit: 2_147_483_647, remaining: 2_147_483_646 };
    assert.deepEqual(rateLimitFields([most]), {
      'RateLimit-Policy': '"minute";q=2147483647;w=60',
      RateLimit: '"minute";r=2147483646;t=7',
    });
  });
});

describe('the problem of a used-up quota', () => {
  const REFUSALS = [
    [[MINUTE], '7', "You have used up your plan's requests per minute. Wait 7 s, then try again."],
    [[DAY], '3601', "You have used up your plan's requests per day. Wait 3601 s, then try again."],
    [
      [MINUTE, DAY],
      '3601',
      "You have used up your plan's requests per minute and per day. Wait 3601 s, then try again.",
    ],
    [
      [
        { ...MINUTE, resetSeconds: 60 },
        { ...DAY, resetSeconds: 2 },
      ],
      '60',
      "You have used up your plan's requests per minute and per day. Wait 60 s, then try again.",
    ],
  ] as const;

  it('a refusal names the quotas and the longest of their waits', () => {
    for (const [violated, seconds, detail] of REFUSALS) {
      const problem = rateLimitExceeded(violated);
      assert.equal(problem.code, 'rate_limit_exceeded');
      assert.equal(problem.status, 429);
      assert.equal(problem.type, TYPE);
      assert.equal(problem.detail, detail);
      assert.deepEqual(problem.members, { 'violated-policies': violated.map(({ name }) => name) });
      assert.deepEqual(problem.headers, { 'Retry-After': seconds });
    }
  });
});
