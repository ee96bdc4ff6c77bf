import assert from 'node:assert/strict';
import { createClient } from '../../src/follower/client.js';
import { follow } from '../../src/follower/follow.js';
import { adaptiveInterval } from '../../src/follower/poll-interval.js';
import { rateLimitFields } from '../../src/http/response/rate-limit-fields.js';
import { startScripted } from './scripted-server.js';

/** The field as the service writes it. */
function field(
  ...quotas: readonly (readonly [name: 'minute' | 'day', remaining: number, resetSeconds: number])[]
): string {
  return rateLimitFields(
    quotas.map(([name, remaining, resetSeconds]) => ({ name, limit: 0, windowSeconds: 0, remaining, resetSeconds })),
  ).RateLimit;
}

describe('the interval of a follower', () => {
  it('spreads half of what the tightest quota has left over the time until its reset', () => {
    assert.equal(adaptiveInterval(field(['minute', 60, 60], ['day', 10_000, 86_400])), 17_280);
    assert.equal(adaptiveInterval(field(['minute', 10, 40], ['day', 10_000, 3_600])), 8_000);
  });

  it('is a second at least and a minute at most', () => {
    assert.equal(adaptiveInterval(field(['minute', 600, 60], ['day', 1_000_000, 86_400])), 1_000);
    assert.equal(adaptiveInterval(field(['day', 3, 86_400])), 60_000);
    assert.equal(adaptiveInterval(field(['day', 0, 50])), 60_000);
    assert.equal(adaptiveInterval(field(['day', 0, 0])), 1_000);
  });

  it('is unknown where the service sends no limits, or others than expected', () => {
    for (const text of [null, '', 'limit=100, remaining=50, reset=5', '"day";r=-5;t=3', '"day";r=x;t=3']) {
      assert.equal(adaptiveInterval(text), undefined);
    }
  });

  it('is taken from each response unless the follower has one of its own', async () => {
    const page = (hasMore: boolean, next: number, limits: string) => ({
      body: { data: [], meta: { has_more: hasMore, next_since: next } },
      headers: { RateLimit: limits },
    });
    const slow = field(['day', 1, 86_400]);
    const server = await startScripted([
      // Full pages are read at once.
      page(true, 1, slow),
      page(true, 2, slow),
      page(false, 3, field(['minute', 120, 60])),
      page(false, 4, slow),
    ]);
    const ending = new AbortController();
    const times: number[] = [];
    try {
      await follow({
        readPage: createClient({ baseUrl: server.url, key: 'svc_key' }),
        since: 0,
        once: false,
        intervalMs: undefined,
        store: () => {
          if (times.push(performance.now()) === 4) ending.abort();
          return Promise.resolve();
        },
        signal: ending.signal,
        random: () => 0.5,
      });
    } finally {
      await server.close();
    }
    const [first = 0, , third = 0, fourth = 0] = times;
    assert.ok(third - first < 900, `full pages took ${third - first} ms`);
    assert.ok(fourth - third >= 990, `the pause was ${fourth - third} ms`);
  });
});
