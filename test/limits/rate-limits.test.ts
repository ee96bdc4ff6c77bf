import assert from 'node:assert/strict';
import { revokeKey } from '../../src/keys/revoke.js';
import { newPlan, type NewKey } from '../support/keys/new-key.js';
import { assertHeaders, assertProblem } from '../support/problem.js';
import type { Reply, RequestOptions } from '../support/request.js';
import { testWorld } from '../support/world.js';

describe('rate limits', () => {
  const world = testWorld({ service: true });
  let plans = 0;

  const planOf = (requestsPerMinute: number, requestsPerDay: number): Promise<string> =>
    newPlan(world.db, `plan${++plans}`, requestsPerMinute, requestsPerDay);

  async function newKey(planId: string, owner: Pick<NewKey, 'developerId'> = {}): Promise<string> {
    return (await world.newKey({ planId, ...owner })).key;
  }

  function ask(key: string, path = '/api/v1/stats', options: RequestOptions = {}): Promise<Reply> {
    return world.service.get(path, { ...options, headers: { 'x-api-key': key, ...options.headers } });
  }

  /** What is left of the minute and of the day. */
  function remaining({ headers }: Reply): number[] {
    return [...String(headers.ratelimit).matchAll(/;r=(\d+);/g)].map(([, count]) => Number(count));
  }

  it('every response to a valid key has the rate-limit fields', async () => {
    const key = await newKey(await planOf(60, 10_000));
    assertHeaders(await ask(key), {
      'ratelimit-policy': '"minute";q=60;w=60, "day";q=10000;w=86400',
      ratelimit: '"minute";r=59;t=60, "day";r=9999;t=86400',
    });
    const { headers } = await ask(key);
    assert.match(String(headers.ratelimit), /^"minute";r=58;t=\d+, "day";r=9998;t=\d+$/);
    assert.equal(headers['retry-after'], undefined);
  });

  for (const [what, [perMinute, perDay], violated, wait, left] of [
    ['the minute', [2, 10_000], ['minute'], /^[1-9]\d?$/, [0, 9_998]],
    // Refused requests are not charged to the minute.
    ['the day', [100, 2], ['day'], /^8\d{4}$/, [98, 0]],
    ['both, which waits for the day,', [2, 2], ['minute', 'day'], /^8\d{4}$/, [0, 0]],
  ] as const) {
    it(`a request over the limit of ${what} gets 429 with the limits and the seconds to wait`, async () => {
      const key = await newKey(await planOf(perMinute, perDay));
      for (let i = 0; i < 2; i += 1) assert.equal((await ask(key)).status, 200);
      for (let i = 0; i < 3; i += 1) {
        const reply = await ask(key, '/api/v1/me');
        const retryAfter = String(reply.headers['retry-after']);
        const windows = violated.map((name) => `per ${name}`).join(' and ');
        assertProblem(reply, 'rate_limit_exceeded', {
          type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
          detail: `You have used up your plan's requests ${windows}. Wait ${retryAfter} s, then try again.`,
          members: { 'violated-policies': [...violated] },
          headers: {
            vary: 'Authorization, X-API-Key',
            'ratelimit-policy': `"minute";q=${perMinute};w=60, "day";q=${perDay};w=86400`,
          },
        });
        assert.match(retryAfter, wait);
        assert.match(String(reply.headers.ratelimit), new RegExp(`;t=${retryAfter}\\b`));
        assert.deepEqual(remaining(reply), left);
        const head = await ask(key, '/api/v1/me', { method: 'HEAD' });
        assert.deepEqual([head.status, head.text], [429, '']);
        assert.deepEqual(Object.keys(head.headers), Object.keys(reply.headers));
      }
    });
  }

  it('every request with a valid key is counted, and no other', async () => {
    const developerId = await world.newDeveloper();
    const plan = await planOf(100, 1_000);
    const key = await newKey(plan, { developerId });
    const etag = (await ask(key)).headers.etag ?? '';
    let left = 99;
    for (const [path, options, status] of [
      ['/api/v1/stats', { headers: { 'if-none-match': etag } }, 304],
      ['/api/v1/stats', { method: 'HEAD' }, 200],
      ['/api/v1/nope', {}, 404],
      ['/api/v1/titles/none', {}, 404],
      ['/api/v1/changes', {}, 400],
      ['/api/v1/stats?%zz', {}, 400],
      ['/api/v1/me', { method: 'DELETE' }, 405],
    ] as const) {
      const reply = await ask(key, path, options);
      assert.equal(reply.status, status, path);
      left -= 1;
      assert.deepEqual(remaining(reply), [left, left + 900], path);
    }
    // None of these belongs to the developer, or to the API.
    assert.equal((await ask(`${key}x`)).status, 401);
    assert.equal((await world.service.get('/api/v1/stats', { headers: {} })).status, 401);
    assert.equal((await ask(key, '/api/v1/stats?api_key=other')).status, 401);
    assert.equal((await ask(key, '/livez')).status, 200);
    assert.equal((await ask(key, '/nope')).status, 404);
    const revoked = await newKey(plan, { developerId });
    await revokeKey(world.db, revoked.slice(0, 12));
    assert.equal((await ask(revoked)).status, 401);
    assert.deepEqual(remaining(await ask(key)), [left - 1, left - 1 + 900]);
  });

  it('a request over the limit is refused before its path and its parameters are checked', async () => {
    const key = await newKey(await planOf(1, 10));
    await ask(key);
    const queries = world.service.queries.length;
    for (const path of ['/api/v1/nope', '/api/v1/changes', '/api/v1/titles/%zz', '/api/v1/stats']) {
      assert.equal((await ask(key, path)).status, 429);
      assert.equal((await ask(key, path, { method: 'POST' })).status, 429);
    }
    assert.equal(world.service.queries.length, queries + 8); // for the key
  });
});
