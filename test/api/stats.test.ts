import assert from 'node:assert/strict';
import { assertHeaders } from '../support/problem.js';
import { startService, type TestService } from '../support/service.js';

const HEADERS = {
  'content-type': 'application/json',
  'cache-control': 'private, no-cache',
  vary: 'Authorization, X-API-Key',
  'ratelimit-policy': '"minute";q=2000000000;w=60, "day";q=2000000000;w=86400',
};

describe('GET /api/v1/stats', () => {
  let service: TestService;

  before(async () => {
    service = await startService();
  });

  after(() => service.stop());

  it('answers zeros for an empty catalogue', async () => {
    const reply = await service.get('/api/v1/stats');
    assert.equal(reply.status, 200);
    assertHeaders(reply, { ...HEADERS, 'content-length': String(reply.text.length) });
    assert.deepEqual(reply.json, {
      data: { titles: 0, movies: 0, series: 0, available_in_library: 0, people: 0, svc_collections: 0 },
    });
  });

  it('answers the totals of this moment, with one query beside the one for the key', async () => {
    await service.db('titles').insert([
      { svc_id: 'm1', media_type: 'movie', title: 'One', available_in_library: true },
      { svc_id: 'm2', media_type: 'movie', title: 'Two' },
      { svc_id: 's1', media_type: 'series', title: 'Three', available_in_library: true },
    ]);
    await service.db('people').insert(['p1', 'p2', 'p3', 'p4'].map((id) => ({ svc_id: id, name: id })));
    await service.db('collections').insert([{ svc_id: 'c1', name: 'Noir' }]);
    const queries = service.queries.length;
    const { status, json } = await service.get('/api/v1/stats');
    assert.equal(service.queries.length, queries + 2);
    assert.equal(status, 200);
    assert.deepEqual(json, {
      data: { titles: 3, movies: 2, series: 1, available_in_library: 2, people: 4, svc_collections: 1 },
    });
  });
});
