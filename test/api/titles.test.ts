import assert from 'node:assert/strict';
import type { Answer } from '../../src/contract.js';
import { assertHeaders, assertProblem } from '../support/problem.js';
import { startService, type TestService } from '../support/service.js';
import { changesOf } from '../support/titles.js';

/** As much of the contract as these tests look at. */
interface Contract {
  readonly components: {
    readonly schemas: { readonly CatalogEntry: { readonly properties: { readonly title: { maxLength: number } } } };
  };
}

describe('GET /api/v1/titles/{title_id}', () => {
  let service: TestService;

  before(async () => {
    service = await startService();
  });

  after(() => service.stop());

  it('answers the title, with times to the microsecond', async () => {
    const [times] = await service
      .db('titles')
      .insert({
        svc_id: 'Amelie_2001-x',
        media_type: 'movie',
        title: 'Le Fabuleux Destin d’Amélie "P."',
        has_bundles: true,
      })
      .returning<{ created_at: string; updated_at: string }[]>(['created_at', 'updated_at']);
    const reply = await service.get('/api/v1/titles/Amelie_2001-x');
    assert.equal(reply.status, 200);
    assertHeaders(reply, {
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(reply.text)),
      'cache-control': 'private, no-cache',
      vary: 'Authorization, X-API-Key',
    });
    assert.deepEqual(reply.json, {
      data: {
        svc_id: 'Amelie_2001-x',
        media_type: 'movie',
        title: 'Le Fabuleux Destin d’Amélie "P."',
        updated_at: times?.updated_at,
        has_bundles: true,
        available_in_library: false,
        created_at: times?.created_at,
      },
    });
    assert.match(times?.updated_at ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
    assert.equal(times?.created_at, times?.updated_at);
  });

  it('answers the new state after an update, and keeps the time of creation', async () => {
    await service.db('titles').insert({ svc_id: 'wire', media_type: 'movie', title: 'Wire' });
    const before = (await service.get('/api/v1/titles/wire')).json as {
      data: { created_at: string; updated_at: string };
    };
    await service.db('titles').where({ svc_id: 'wire' }).update({
      media_type: 'series',
      title: 'The Wire',
      has_bundles: true,
      available_in_library: true,
    });
    const after = (await service.get('/api/v1/titles/wire')).json as typeof before;
    assert.deepEqual(after, {
      data: {
        svc_id: 'wire',
        media_type: 'series',
        title: 'The Wire',
        updated_at: after.data.updated_at,
        has_bundles: true,
        available_in_library: true,
        created_at: before.data.created_at,
      },
    });
    assert.ok(after.data.updated_at > before.data.updated_at);
  });

  it('tells ids apart by case, and takes the longest there is', async () => {
    const longest = 'x'.repeat(64);
    await service.db('titles').insert([
      { svc_id: 'Heat', media_type: 'movie', title: 'Heat' },
      { svc_id: longest, media_type: 'movie', title: 'Long' },
      { svc_id: '-', media_type: 'movie', title: 'Dash' },
      { svc_id: '__proto__', media_type: 'movie', title: 'Prototype' },
    ]);
    for (const id of ['Heat', longest, '-', '__proto__', '%48eat']) {
      assert.equal((await service.get(`/api/v1/titles/${id}`)).status, 200, id);
    }
    for (const id of ['heat', 'x'.repeat(63), '--', 'constructor', 'toString', '0']) {
      assertProblem(await service.get(`/api/v1/titles/${id}`), 'title_not_found', {
        detail: 'The catalogue has no title with this id.',
        headers: { vary: 'Authorization, X-API-Key' },
      });
    }
  });

  it('answers a title of the longest name that the contract allows, whole, and the database takes none longer', async () => {
    const { components } = (await service.get('/openapi.json')).json as Contract;
    const { maxLength } = components.schemas.CatalogEntry.properties.title;
    assert.ok(maxLength >= 100);
    // Four bytes and two UTF-16 units each: what is counted are characters.
    const title = '🎬'.repeat(maxLength);
    await service.db('titles').insert({ svc_id: 'longest-name', media_type: 'movie', title });
    const reply = await service.get('/api/v1/titles/longest-name');
    assert.equal((reply.json as Answer<'getTitle'>).data.title, title);
    assert.equal(reply.headers['content-length'], String(reply.bytes.length));
    const since = Math.floor(Date.now() / 1000) - 60;
    const { data } = changesOf(await service.get(`/api/v1/changes?since=${since}`));
    assert.equal(data.find(({ svc_id: id }) => id === 'longest-name')?.title, title);
    await assert.rejects(
      service
        .db('titles')
        .insert({ svc_id: 'too-long', media_type: 'movie', title: `${title}x` })
        .then(),
      /titles_title_length/,
    );
  });

  for (const [what, id] of [
    ['an encoded slash', 'a%2Fb'],
    ['an encoded question mark', 'a%3Fb'],
    ['NUL', 'a%00b'],
    ['a line feed at the end', 'Heat%0A'],
    ['a blank', '%20'],
    ['an encoded percent sign', '%2525'],
    ['letters beyond ASCII', 'Am%C3%A9lie'],
    ['dots', '..'],
    ['encoded dots', '%2e%2e'],
    ['a template', '{title_id}'],
    ['65 characters', 'x'.repeat(65)],
    ['9,000 characters', 'x'.repeat(9000)],
    ['SQL', "'%20or%201=1--"],
  ] as const) {
    it(`refuses what can be no id, without asking the database: ${what}`, async () => {
      const queries = service.queries.length;
      assertProblem(await service.get(`/api/v1/titles/${id}`), 'invalid_parameter', {
        detail:
          id.length > 64
            ? 'The parameter title_id must NOT have more than 64 characters.'
            : 'The parameter title_id must match pattern "^[A-Za-z0-9_-]{1,64}$".',
      });
      assert.equal(service.queries.length, queries + 1); // for the key
    });
  }
});
