import assert from 'node:assert/strict';
import { setImmediate as immediate } from 'node:timers/promises';
import { boundConcurrency } from '../../src/http/request/concurrency.js';
import type { Middleware, RequestContext, RequestState } from '../../src/http/request/context.js';
import { eventually } from '../support/eventually.js';
import { assertHeaders } from '../support/problem.js';
import { send } from '../support/request.js';
import { serveWithoutDatabase } from '../pages/site-alone.js';

describe('the pages during an outage', () => {
  it('the landing page and the status page are served without the database, and the former without its numbers', async () => {
    const { url, health, server } = await serveWithoutDatabase();
    health.note('database', 'lost');
    const { status, text } = await send(url, '/');
    assert.equal(status, 200);
    assert.ok(text.includes('Unavailable') && text.includes('Most calls fail with 503'));
    assert.ok(text.includes('Your keys are not affected'));
    assert.ok(text.includes('These numbers are unavailable right now.') && text.includes('The plans cannot be shown'));
    assert.doesNotMatch(text, /database|Redis/);
    assert.ok(text.includes('The latest changes are unavailable right now.'));
    assert.ok(text.includes('curl --fail-with-body'));
    assert.ok((await send(url, '/status')).text.includes('Most calls fail with 503'));
    health.note('database', 'up');
    health.note('redis', 'lost');
    await eventually('the page shows the new status', async () => {
      const degraded = await send(url, '/');
      return (
        degraded.text.includes('Degraded') &&
        degraded.text.includes('All calls work.') &&
        !degraded.text.includes('Redis')
      );
    });
    server.close();
  });

  it('a page is refused with a 503 page and Retry-After while too many requests wait', async () => {
    const { url, server } = await serveWithoutDatabase({ running: 0, waiting: 0, perAddress: 1 });
    assert.equal((await send(url, '/docs')).status, 503);
    const { status, headers, text } = await send(url, '/');
    assert.equal(status, 503);
    assertHeaders({ headers } as never, { 'retry-after': '2', 'content-type': 'text/html; charset=utf-8' });
    assert.ok(text.includes('Try again in a few seconds.'));
    const [, stylesheet = ''] = /href="(\/assets\/site[^"]+css)"/.exec(text) ?? [];
    assert.equal((await send(url, stylesheet)).status, 200, 'its stylesheet is served');
    server.close();
  });
});

describe('the bounds on pages', () => {
  it('signed-in developers and visitors have separate bounds', async () => {
    const { url, server } = await serveWithoutDatabase({ running: 1, waiting: 0, perAddress: 1, perWindow: 1 });
    const get = async (headers: Record<string, string>): Promise<number> =>
      (await send(url, '/status', { headers })).status;
    const session = { cookie: `catalog-session=${'f'.repeat(64)}` };
    assert.deepEqual([await get({}), await get({})], [200, 429]);
    assert.deepEqual([await get(session), await get(session)], [200, 429]);
    server.close();
  });
});

describe('a bound on concurrency', () => {
  let finish: (() => void)[];

  beforeEach(() => (finish = []));

  /** Sends a request through a bound. It ends when the test finishes it. */
  function pass(bounded: Middleware, address = '192.0.2.1', state: Partial<RequestState> = {}): Promise<void> {
    const ctx = { state, req: { socket: { remoteAddress: address } } } as unknown as RequestContext;
    return bounded(ctx, () => new Promise((resolve) => finish.push(resolve)));
  }

  it('serves a number of requests at a time, lets others wait, and refuses the rest', async () => {
    const bounded = boundConcurrency({ running: 2, waiting: 2, perAddress: 9 }, 0);
    const four = [1, 2, 3, 4].map(() => pass(bounded));
    await immediate();
    assert.equal(finish.length, 2);
    await assert.rejects(pass(bounded), { code: 'service_unavailable' });
    for (const end of finish.splice(0)) end();
    await immediate();
    assert.equal(finish.length, 2);
    for (const end of finish) end();
    await Promise.all(four);
  });

  it('passes on the turn of a request that failed, or that was answered while it waited', async () => {
    const bounded = boundConcurrency({ running: 1, waiting: 2, perAddress: 9 }, 0);
    const ctx = { state: {}, req: { socket: { remoteAddress: '192.0.2.1' } } } as unknown as RequestContext;
    await assert.rejects(
      bounded(ctx, () => Promise.reject(new Error('broken'))),
      /broken/,
    );
    await pass(bounded, '192.0.2.1', { timedOut: true });
    assert.equal(finish.length, 0);
    const served = pass(bounded);
    await immediate();
    finish.shift()?.();
    await served;
  });

  it('leaves room for others when one address has many requests under way', async () => {
    const bounded = boundConcurrency({ running: 1, waiting: 2, perAddress: 2 }, 0);
    const served = [pass(bounded), pass(bounded)];
    const refused = assert.rejects(pass(bounded), { status: 429, headers: { 'Retry-After': '1' } });
    served.push(pass(bounded, '192.0.2.2'));
    for (let ended = 0; ended < 4; ended += 1) {
      await immediate();
      finish.shift()?.();
    }
    await Promise.all([...served, refused]);
    const again = pass(bounded);
    await immediate();
    finish.shift()?.();
    await again;
  });

  it('refuses an address above its limit, and serves another one', async () => {
    const bounded = boundConcurrency({ running: 9, waiting: 9, perAddress: 9, perWindow: 2 }, 0);
    const served = [pass(bounded), pass(bounded)];
    await assert.rejects(pass(bounded), { status: 429, headers: { 'Retry-After': '10' } });
    served.push(pass(bounded, '192.0.2.2'));
    await immediate();
    assert.equal(finish.length, 3);
    for (const end of finish) end();
    await Promise.all(served);
  });
});
