import assert from 'node:assert/strict';
import { createClient } from '../../src/client/client.js';
import { follow } from '../../src/client/follow.js';
import { retryPolicy } from '../../src/client/retry.js';
import { adaptiveInterval } from '../../src/client/poll-interval.js';
import { interval } from '../../src/commands/arguments.js';
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

  it('is given in seconds, from a tenth of one to a day', () => {
    assert.deepEqual(['0.1', '5', '86400'].map(interval), [100, 5_000, 86_400_000]);
    for (const text of ['0.09', '86400.1', '5s', '-1', '']) assert.throws(() => interval(text), /from 0\.1 to 86400/);
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

  it('is taken from each response unless the follower has one of its own, and full pages are read at once', async () => {
    const page = (hasMore: boolean, next: number, limits: string) => ({
      body: { data: [], meta: { has_more: hasMore, next_since: next } },
      headers: { RateLimit: limits },
    });
    const [slow, fast] = [field(['day', 1, 86_400]), field(['minute', 120, 60])];
    // With pauses of the slow limits, this would take three minutes.
    const pages = [page(true, 1, slow), page(true, 2, slow), page(false, 3, fast), page(false, 4, slow)];
    const server = await startScripted(pages);
    const ending = new AbortController();
    const stored: number[] = [];
    await follow({
      fetchPage: createClient({ baseUrl: server.url, key: 'svc_key' }),
      since: 0,
      once: false,
      intervalMs: undefined,
      retryPolicy: retryPolicy(false),
      store: async ({ meta }) => {
        if (stored.push(meta.next_since) === pages.length) ending.abort();
      },
      signal: ending.signal,
      random: () => 0.5,
    });
    await server.close();
    assert.deepEqual(stored, [1, 2, 3, 4]);
  });
});
