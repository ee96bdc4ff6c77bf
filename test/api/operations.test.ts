import assert from 'node:assert/strict';
import { createDeveloper } from '../../src/developers/developers.js';
import { createKey } from '../../src/keys/keys.js';
import { setPlan } from '../../src/limits/plans.js';
import { eachCase } from '../support/each-case.js';
import { assertHeaders, assertProblem } from '../support/problem.js';
import type { Reply } from '../support/request.js';
import { PRODUCT_BOUNDS } from '../support/program.js';
import { eventually } from '../support/eventually.js';
import { startService, type TestService } from '../support/service.js';

const TITLE = '/api/v1/titles/Amelie_2001-x';

describe('the operations', () => {
  let service: TestService;

  before(async () => {
    service = await startService();
  });

  after(() => service.stop());

  /** Compares a whole answer: its status, its fields and its body. */
  function assertAnswer(reply: Reply, data: object, cacheControl = 'private, no-cache'): void {
    assert.equal(reply.status, 200, reply.text);
    assertHeaders(reply, {
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(reply.text)),
      'cache-control': cacheControl,
      vary: 'Authorization, X-API-Key',
    });
    assert.deepEqual(reply.json, { data });
  }

  it('GET /stats answers zeros for an empty catalogue, and the current totals by one query of its own', async () => {
    const none = { titles: 0, movies: 0, series: 0, available_in_library: 0, people: 0, svc_collections: 0 };
    assertAnswer(await service.get('/api/v1/stats'), none);
    await service.db('titles').insert([
      { svc_id: 'm1', media_type: 'movie', title: 'One', available_in_library: true },
      { svc_id: 'm2', media_type: 'movie', title: 'Two' },
      { svc_id: 's1', media_type: 'series', title: 'Three', available_in_library: true },
    ]);
    await service.db('people').insert(['p1', 'p2', 'p3', 'p4'].map((id) => ({ svc_id: id, name: id })));
    await service.db('collections').insert([{ svc_id: 'c1', name: 'Noir' }]);
    const queries = service.queries.length;
    const totals = { titles: 3, movies: 2, series: 1, available_in_library: 2, people: 4, svc_collections: 1 };
    assertAnswer(await service.get('/api/v1/stats'), totals);
    // The other one looks up the key.
    assert.equal(service.queries.length, queries + 2);
  });

  it('GET /me answers the key, its developer and its plan, as they are at each request, and is never stored', async () => {
    const { id } = await createDeveloper(service.db, { projectName: 'Ciné & "Film" 映画', attributionRequired: true });
    await setPlan(service.db, 'gold', { name: 'Gold', requestsPerMinute: 7, requestsPerDay: 70, commercialUse: true });
    const { key, prefix } = await createKey(service.db, { developerId: id, planId: 'gold', label: 'private remark' });
    const account = (plan: object): object => ({
      project_name: 'Ciné & "Film" 映画',
      key_prefix: prefix,
      plan: { id: 'gold', name: 'Gold', ...plan },
      attribution_required: true,
    });
    const get = (): Promise<Reply> => service.get('/api/v1/me', { headers: { 'x-api-key': key } });
    const first = await get();
    assertAnswer(first, account({ requests_per_minute: 7, requests_per_day: 70, commercial_use: true }), 'no-store');
    assertHeaders(first, {
      etag: undefined,
      'ratelimit-policy': '"minute";q=7;w=60, "day";q=70;w=86400',
      ratelimit: '"minute";r=6;t=60, "day";r=69;t=86400',
    });
    await setPlan(service.db, 'gold', { requestsPerDay: 71, commercialUse: false });
    assertAnswer(
      await get(),
      account({ requests_per_minute: 7, requests_per_day: 71, commercial_use: false }),
      'no-store',
    );
  });

  it('GET /titles/{title_id} answers the current state, with times to the microsecond', async () => {
    const title = {
      svc_id: 'Amelie_2001-x',
      media_type: 'movie',
      title: 'Le Fabuleux Destin d’Amélie "P."',
      has_bundles: true,
      available_in_library: false,
    };
    const times = async (): Promise<{ created_at: string; updated_at: string }> =>
      await service.db('titles').where({ svc_id: title.svc_id }).first('created_at', 'updated_at');
    await service.db('titles').insert(title);
    const created = await times();
    assertAnswer(await service.get(TITLE), { ...title, ...created });
    assert.match(created.updated_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
    assert.equal(created.created_at, created.updated_at);

    const change = { media_type: 'series', title: 'A', has_bundles: false, available_in_library: true };
    await service.db('titles').where({ svc_id: title.svc_id }).update(change);
    const updated = await times();
    assertAnswer(await service.get(TITLE), { ...title, ...change, ...updated });
    assert.ok(updated.created_at === created.created_at && updated.updated_at > created.updated_at);
  });

  it('ids are case-sensitive, and may have the names of properties of objects', async () => {
    const ids = ['Heat', '-', '__proto__'];
    await service.db('titles').insert(ids.map((id) => ({ svc_id: id, media_type: 'movie', title: id })));
    for (const id of [...ids, '%48eat']) assert.equal((await service.get(`/api/v1/titles/${id}`)).status, 200, id);
    for (const id of ['heat', '--', 'constructor', 'toString', '0']) {
      assertProblem(await service.get(`/api/v1/titles/${id}`), 'title_not_found', {
        detail: 'The catalogue has no title with this id.',
        headers: { vary: 'Authorization, X-API-Key' },
      });
    }
  });

  const NO_IDS = [
    'a%2Fb',
    'a%3Fb',
    'a%00b',
    'Heat%0A',
    '%20',
    '%2525',
    'Am%C3%A9lie',
    '..',
    '%2e%2e',
    '{title_id}',
    "'%20or%201=1--",
    'x'.repeat(65),
    'x'.repeat(9_000),
  ];

  it('text that cannot be an id is refused without a query for it', () =>
    eachCase(NO_IDS, async (id) => {
      const queries = service.queries.length;
      assertProblem(await service.get(`/api/v1/titles/${id}`), 'invalid_parameter', {
        detail: 'title_id must be 1 to 64 letters, digits, hyphens and underscores, such as blade-runner-1982.',
      });
      // That of the key.
      assert.equal(service.queries.length, queries + 1);
    }));

  it('requests that share a query are answered with 503 while it waits, and served afterwards', async () => {
    const impatient = await startService({ databaseUrl: service.databaseUrl, settings: PRODUCT_BOUNDS });
    const get = async (): Promise<string> => {
      const replies = await Promise.all(Array.from({ length: 5 }, () => impatient.get(TITLE)));
      return [...new Set(replies.map(({ status }) => status))].join();
    };
    const lock = await service.db.transaction();
    try {
      await lock.raw('lock table titles in access exclusive mode');
      assert.equal(await get(), '503');
    } finally {
      await lock.rollback();
    }
    await eventually('all are served', async () => (await get()) === '200');
    await impatient.stop();
  });
});
