import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { load } from 'js-yaml';
import type { Document } from 'openapi-backend';
import { operations } from '../../../src/api/index.js';
import type { Dependencies } from '../../../src/api/operation.js';
import { Problem } from '../../../src/errors.js';
import { byContract } from '../../../src/http/openapi/dispatch.js';
import type { Middleware, RequestContext } from '../../../src/http/request/context.js';
import { parseTarget } from '../../../src/http/request/target.js';
import { contextOf } from '../../support/http/context.js';

const COUNTS = { titles: 1, movies: 1, series: 0, available_in_library: 1, people: 2, collections: 3 };

describe('dispatch', () => {
  let reads = 0;
  let reading = Promise.resolve();
  let stage: Middleware;

  before(async () => {
    const contract = await readFile(new URL('../../../openapi.yaml', import.meta.url), 'utf8');
    const read = () => {
      reads += 1;
      return reading.then(() => COUNTS);
    };
    stage = (await byContract(load(contract) as Document, { read } as unknown as Dependencies)).dispatch;
  });

  beforeEach(() => {
    reads = 0;
  });

  function contextFor(target: string): RequestContext {
    const ctx = contextOf();
    ctx.method = 'GET';
    ctx.state = { requestId: 'x', target: parseTarget(target), caller: {} as never };
    return ctx;
  }

  const run = (ctx: RequestContext): Promise<void> => stage(ctx, () => Promise.resolve());

  it('a request gets the answer of its operation, which is in the state', async () => {
    const ctx = contextFor('/api/v1/stats');
    await run(ctx);
    const { collections, ...others } = COUNTS;
    assert.deepEqual(JSON.parse(String(ctx.body)), { data: { ...others, svc_collections: collections } });
    assert.equal(ctx.state.operation, operations.getStats);
  });

  it('no operation is called after the deadline', async () => {
    const ctx = contextFor('/api/v1/stats');
    ctx.state.timedOut = true;
    await run(ctx);
    assert.deepEqual([reads, ctx.state.operation, ctx.body], [0, undefined, undefined]);
  });

  it('a late answer does not replace that of the deadline', async () => {
    const ctx = contextFor('/api/v1/stats');
    let end = (): void => undefined;
    reading = new Promise((resolve) => (end = resolve));
    const answered = run(ctx);
    ctx.state.timedOut = true;
    end();
    await answered;
    assert.deepEqual([reads, ctx.body], [1, undefined]);
  });

  it('no operation is called without a caller', async () => {
    const ctx = contextFor('/api/v1/stats');
    delete ctx.state.caller;
    await assert.rejects(run(ctx), /^Error: a request without a caller was dispatched$/);
    assert.equal(reads, 0);
  });

  it('a request that no operation can answer throws its problem, and its operation is in the state', async () => {
    for (const [target, operationId, code] of [
      ['/api/v1/changes', 'getChanges', 'missing_since'],
      ['/api/v1/changes?since=x', 'getChanges', 'invalid_since'],
      ['/api/v1/titles/a%20b', 'getTitle', 'invalid_parameter'],
      ['/api/v1/nowhere', undefined, 'not_found'],
    ] as const) {
      const ctx = contextFor(target);
      await assert.rejects(run(ctx), (error) => error instanceof Problem && error.code === code);
      assert.deepEqual([ctx.state.operation?.id, ctx.body], [operationId, undefined]);
    }
  });
});
