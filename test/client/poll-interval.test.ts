import assert from 'node:assert/strict';
import { createClient } from '../../src/client/client.js';
import { follow } from '../../src/client/follow.js';
import { retryPolicy } from '../../src/client/retry.js';
import { adaptiveInterval } from '../../src/client/poll-interval.js';
import { interval } from '../../src/commands/arguments.js';
import { rateLimitFields } from '../../src/http/response/rate-limit-fields.js';
import { startScripted } from './scripted-server.js';

type Quota = readonly [name: 'minute' | 'day', remaining: number, resetSeconds: number];

/** The fields as the service writes them. */
function fields(...quotas: readonly Quota[]): Record<string, string> {
  return rateLimitFields(
    quotas.map(([name, remaining, resetSeconds]) => ({ name, limit: 0, windowSeconds: 0, remaining, resetSeconds })),
  );
}

function intervalOf(sent: Readonly<Record<string, string>>): number | undefined {
  return adaptiveInterval(new Headers(sent));
}

/** The fields of the service with a quota of another kind after its own. */
function withFurther(state: string, policy?: string): Record<string, string> {
  const { RateLimit, 'RateLimit-Policy': policies } = fields(['minute', 60, 60]);
  return {
    RateLimit: `${RateLimit}, ${state}`,
    'RateLimit-Policy': policy === undefined ? `${policies}` : `${policies}, ${policy}`,
  };
}

/** What a service sends, and the pause. */
const CASES: Readonly<Record<string, readonly [sent: Record<string, string>, expected: number]>> = {
  'half of what the tightest quota has left is spread over the time until its reset': [
    fields(['minute', 60, 60], ['day', 10_000, 86_400]),
    17_280,
  ],
  'the tightest quota may be the shorter one': [fields(['minute', 10, 40], ['day', 10_000, 3_600]), 8_000],
  'the last request may be used at once, and the reset is waited for after it': [fields(['minute', 1, 3]), 3_000],
  'a used-up quota is waited for until its reset': [fields(['minute', 0, 3]), 3_000],
  'a pause is a second at least': [fields(['minute', 600, 60], ['day', 1_000_000, 86_400]), 1_000],
  'a pause is a second at least, also after a reset': [fields(['day', 0, 0]), 1_000],
  'a pause is a minute at most': [fields(['day', 3, 86_400]), 60_000],
  'a pause is a minute at most, also while a quota is used up': [fields(['day', 0, 3_000]), 60_000],
  'a further quota of requests counts, with parameters in any order': [
    withFurther('"burst";t=12;pk=:a2V5:;r=2', '"burst";w=12;q=10;qu="requests"'),
    12_000,
  ],
  'a further quota of requests counts, used up and without a unit': [
    withFurther('"burst";r=0;t=5', '"burst";q=10;w=5'),
    5_000,
  ],
  'a quota of bytes is ignored': [withFurther('"bytes";r=0;t=60', '"bytes";q=1000;w=60;qu="content-bytes"'), 2_000],
  'a quota of requests at once is ignored': [
    withFurther('"at-once";r=0;t=60', '"at-once";q=4;qu="concurrent-requests"'),
    2_000,
  ],
  'a quota without a reset is ignored': [withFurther('"burst";r=0', '"burst";q=10'), 2_000],
  'a quota without what is left is ignored': [withFurther('"burst";t=60', '"burst";q=10;w=60'), 2_000],
  'a quota that no policy describes is ignored': [withFurther('"burst";r=0;t=60'), 2_000],
  'a quota with a name that looks like a list is ignored': [withFurther('"a\\", b;r=0";r=0;t=60'), 2_000],
  'a text that is no list of quotas is ignored': [withFurther('limit=100, remaining=0, reset=60'), 2_000],
};

describe('the interval of a follower', () => {
  for (const [what, [sent, expected]] of Object.entries(CASES)) {
    it(what, () => {
      assert.equal(intervalOf(sent), expected);
    });
  }

  it('is given in seconds, from a tenth of one to a day', () => {
    assert.deepEqual(['0.1', '5', '86400'].map(interval), [100, 5_000, 86_400_000]);
    for (const text of ['0.09', '86400.1', '5s', '-1', '']) assert.throws(() => interval(text), /from 0\.1 to 86400/);
  });

  it('is unknown where the service sends no limits, or others than expected', () => {
    for (const text of ['', 'limit=100, remaining=50, reset=5', '"day";r=-5;t=3', '"day";r=x;t=3']) {
      assert.equal(intervalOf({ RateLimit: text, 'RateLimit-Policy': '"day";q=9;w=86400' }), undefined);
    }
    assert.equal(intervalOf({}), undefined);
  });

  it('is taken from each response unless the follower has one of its own, and full pages are read at once', async () => {
    const page = (hasMore: boolean, next: number, headers: Record<string, string>) => ({
      body: { data: [], meta: { has_more: hasMore, next_since: next } },
      headers,
    });
    const [slow, fast] = [fields(['day', 1, 86_400]), fields(['minute', 120, 60])];
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
    await server.stop();
    assert.deepEqual(stored, [1, 2, 3, 4]);
  });
});
