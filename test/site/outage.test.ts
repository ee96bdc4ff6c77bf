import assert from 'node:assert/strict';
import { CachedValue } from '../../src/site/delivery/cached-value.js';
import { boundConcurrency } from '../../src/http/request/concurrency.js';
import type { RequestState } from '../../src/http/request/context.js';
import { assertHeaders } from '../support/problem.js';
import { send } from '../support/request.js';
import { serveWithoutDatabase } from './site-alone.js';

describe('the pages while something is away', () => {
  it('are there without the database: the numbers are missing, and the page says so', async () => {
    const { url, health, server } = await serveWithoutDatabase();
    health.note('database', 'lost');
    const { status, text } = await send(url, '/');
    assert.equal(status, 200);
    assert.ok(text.includes('The database does not answer at the moment'));
    assert.ok(text.includes('Not ready') && text.includes('Requests that need the database are answered with 503.'));
    assert.ok(text.includes('curl -H'));
    health.note('database', 'up');
    health.note('redis', 'lost');
    const degraded = await send(url, '/');
    assert.ok(degraded.text.includes('Degraded') && degraded.text.includes('Limits are counted in each process'));
    server.close();
  });

  it('are refused with 503 and Retry-After where too many requests wait, as a page', async () => {
    const { url, server } = await serveWithoutDatabase({ running: 0, waiting: 0, ofOneAddress: 1 });
    const { status, headers, text } = await send(url, '/');
    assert.equal(status, 503);
    assertHeaders({ headers } as never, { 'retry-after': '2', 'content-type': 'text/html; charset=utf-8' });
    assert.ok(text.includes('Try again in a few seconds.'));
    const [, stylesheet = ''] = /href="(\/assets\/site[^"]+css)"/.exec(text) ?? [];
    assert.equal((await send(url, stylesheet)).status, 200, 'its stylesheet is served');
    server.close();
  });
});

describe('the bound on pages', () => {
  const state = {} as RequestState;

  /** Lets what waits for a turn begin. */
  const turns = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  it('lets so many be made at a time, lets others wait in turn, and refuses the rest', async () => {
    const bounded = boundConcurrency({ running: 2, waiting: 2, ofOneAddress: 4 });
    const finish: (() => void)[] = [];
    const make = (): Promise<void> => new Promise((resolve) => finish.push(resolve));
    const four = [1, 2, 3, 4].map((address) => bounded(state, String(address), make));
    await turns();
    assert.equal(finish.length, 2);
    await assert.rejects(bounded(state, '5', make), { code: 'service_unavailable' });
    for (const end of finish.splice(0)) end();
    await turns();
    assert.equal(finish.length, 2);
    for (const end of finish) end();
    await Promise.all(four);
  });

  it('gives the turn of a page that failed, or whose client has an answer, to the next', async () => {
    const bounded = boundConcurrency({ running: 1, waiting: 2, ofOneAddress: 3 });
    await assert.rejects(
      bounded(state, 'a', () => Promise.reject(new Error('broken'))),
      /broken/,
    );
    const late = { timedOut: true } as RequestState;
    await bounded(late, 'a', () => assert.fail('was made although nobody waits for it'));
    let made = false;
    await bounded(state, 'a', async () => {
      made = true;
    });
    assert.ok(made);
  });

  it('leaves a turn to other addresses, takes turns among addresses, and refuses an address that asks for much', async () => {
    const bounded = boundConcurrency({ running: 3, waiting: 100, ofOneAddress: 5 });
    const begun: string[] = [];
    const finish: (() => void)[] = [];
    const ask = (address: string): Promise<void> =>
      bounded(state, address, () => {
        begun.push(address);
        return new Promise<void>((resolve) => finish.push(resolve));
      });
    const asked = Array.from({ length: 5 }, () => ask('a'));
    await assert.rejects(ask('a'), { status: 429, headers: { 'Retry-After': '2' } });
    asked.push(ask('b'), ask('b'), ask('c'));
    await turns();
    assert.equal(begun.join(''), 'aab');
    while (begun.length < asked.length) {
      finish.shift()?.();
      await turns();
    }
    for (const end of finish.splice(0)) end();
    await Promise.all(asked);
    assert.equal(begun.join('').indexOf('c'), 4, begun.join(''));
    // What an address has asked for is forgotten when it has ended.
    const again = ask('a');
    await turns();
    finish.shift()?.();
    await again;
  });
});

describe('a value that is kept for a while', () => {
  it('is read once for all who ask meanwhile, and again when its time is up', async () => {
    let time = 0;
    let reads = 0;
    const value = new CachedValue(
      async () => (reads += 1),
      { valueMs: 100, failureMs: 10 },
      () => time,
    );
    assert.deepEqual(await Promise.all([value.get(), value.get()]), [1, 1]);
    time = 99;
    assert.equal(await value.get(), 1);
    time = 100;
    assert.equal(await value.get(), 2);
  });

  it('is missing after a failure, for a shorter time', async () => {
    let time = 0;
    const outcomes = [Promise.reject(new Error('away')), Promise.resolve('back')];
    outcomes[0]?.catch(() => undefined);
    const value = new CachedValue(
      () => outcomes.shift() ?? assert.fail('was read too often'),
      { valueMs: 100, failureMs: 10 },
      () => time,
    );
    assert.equal(await value.get(), undefined);
    time = 9;
    assert.equal(await value.get(), undefined);
    time = 10;
    assert.equal(await value.get(), 'back');
  });
});
