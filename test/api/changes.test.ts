import assert from 'node:assert/strict';
import { fromRfc3339, toSeconds } from '../../src/platform/time/micros.js';
import type { Answer } from '../../src/contract.js';
import { assertHeaders, assertProblem } from '../support/problem.js';
import { startService, type TestService } from '../support/service.js';
import { addTitles, changesOf, removeTitles, titleIds } from '../support/titles.js';

type Page = Answer<'getChanges'>;

const PAGE = 200;

/** The columns of a title that a writer may change, and a change of each. */
const COLUMNS: Readonly<Record<string, string>> = {
  media_type: "'series'",
  title: "title || ' 2'",
  has_bundles: 'not has_bundles',
  available_in_library: 'not available_in_library',
};

/** Columns that never change, or that the database sets. */
const OTHER_COLUMNS = ['svc_id', 'created_at', 'updated_at'];

describe('GET /api/v1/changes', () => {
  let service: TestService;
  /** Before everything that a test writes. */
  let start: string;

  before(async () => {
    service = await startService();
  });

  after(() => service.stop());

  beforeEach(async () => {
    await removeTitles(service.db);
    start = String(Math.floor(Date.now() / 1000) - 10);
  });

  async function get(since: string | number): Promise<Page> {
    return changesOf(await service.get(`/api/v1/changes?since=${String(since)}`));
  }

  /** Follows the feed as its documentation says. */
  async function follow(since: string | number): Promise<Page[]> {
    const pages: Page[] = [];
    let next = since;
    for (;;) {
      const page = await get(next);
      pages.push(page);
      next = page.meta.next_since;
      if (!page.meta.has_more) return pages;
      assert.ok(pages.length < 1_000, 'the feed loops');
    }
  }

  const ids = (pages: readonly Page[]): string[] => pages.flatMap(({ data }) => data.map(({ svc_id: id }) => id));

  const stamps = (): Promise<string[]> =>
    service
      .db('titles')
      .orderBy('updated_at')
      .pluck<string[]>('updated_at')
      .then((rows) => rows);

  const update = (svcId: string, title: string): Promise<unknown> =>
    service.db('titles').where({ svc_id: svcId }).update({ title }).then();

  it('a page has the entries after since, oldest first, and the position to continue from', async () => {
    await service
      .db('titles')
      .insert({ svc_id: 'b', media_type: 'series', title: 'Bé "1"', available_in_library: true });
    await service.db('titles').insert({ svc_id: 'a', media_type: 'movie', title: 'A', has_bundles: true });
    const [first = '', second = ''] = await stamps();
    const reply = await service.get(`/api/v1/changes?since=${start}`);
    assertHeaders(reply, {
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(reply.text)),
      link: undefined,
      'feed-id': (await service.db('catalog_feed').pluck<string[]>('identity'))[0],
    });
    assert.deepEqual(reply.json, {
      data: [
        { svc_id: 'b', media_type: 'series', title: 'Bé "1"', updated_at: first, has_bundles: false },
        { svc_id: 'a', media_type: 'movie', title: 'A', updated_at: second, has_bundles: true },
      ],
      meta: { has_more: false, next_since: toSeconds(fromRfc3339(second)) },
    });
    assert.deepEqual(ids([await get(toSeconds(fromRfc3339(first)))]), ['a']);
    assert.deepEqual(ids([await get(toSeconds(fromRfc3339(first) - 1n))]), ['b', 'a']);
  });

  it('a page has titles as they are, whatever they contain', async () => {
    // They would be cut or lost if lists of texts were not escaped.
    const texts = [
      'a, "b", c',
      "l'été",
      'line\nbreak\ttab\u001f\u001e',
      '七人の侍 🎬',
      '\\',
      '[]',
      'null',
      ' ',
      '{a,b}',
    ];
    for (const [i, title] of texts.entries()) {
      await service
        .db('titles')
        .insert({ svc_id: `title_${i}-X`, media_type: 'movie', title, has_bundles: i % 3 === 0 });
    }
    const { data } = await get(start);
    assert.deepEqual(
      data.map(({ title, has_bundles: has }) => [title, has]),
      texts.map((title, i) => [title, i % 3 === 0]),
    );
  });

  it('an empty page has the position of the request', async () => {
    for (const since of [start, `${start}.5`, `${start}.000001`, `${start}.123456`]) {
      assert.deepEqual(await get(since), { data: [], meta: { has_more: false, next_since: Number(since) } });
    }
  });

  it('entries of one statement are paged through without loss or repetition, by links that have no key', async () => {
    for (const count of [PAGE - 1, PAGE, PAGE + 1, 2 * PAGE + 1]) {
      await removeTitles(service.db);
      await addTitles(service.db, count);
      const first = `?api_key=${service.key}&since=${start}`;
      const pages: Page[] = [];
      for (let next: string | undefined = first; next !== undefined;) {
        // The first request has its key in the query alone.
        const reply = await service.get(`/api/v1/changes${next}`, next === first ? { headers: {} } : {});
        const page = changesOf(reply);
        const link = page.meta.has_more ? `<?since=${page.meta.next_since}>; rel="next"` : undefined;
        assertHeaders(reply, { link });
        // A 304 has the fields that the 200 would have for a cache, and a cache has the link already (RFC 9110, section 15.4.5).
        const known = await service.get(`/api/v1/changes${next}`, {
          headers: { 'x-api-key': service.key, 'if-none-match': reply.headers.etag ?? '' },
        });
        assert.equal(known.status, 304);
        assertHeaders(known, { link: undefined });
        next = link?.slice(1, link.indexOf('>'));
        pages.push(page);
      }
      assert.deepEqual(ids(pages), titleIds(count));
      assert.deepEqual(
        pages.map(({ data }) => data.length),
        Array.from({ length: Math.ceil(count / PAGE) }, (_, i) => Math.min(PAGE, count - i * PAGE)),
      );
      assert.deepEqual(ids([await get(pages.at(-1)?.meta.next_since ?? 0)]), []);
    }
  });

  it('an entry that changes while a client pages comes again at the end, in its new state', async () => {
    await addTitles(service.db, 450);
    const first = await get(start);
    await update('title-0100', 'Shown before');
    await update('title-0300', 'Not shown yet');
    const rest = await follow(first.meta.next_since);
    const untouched = titleIds(450)
      .slice(PAGE)
      .filter((id) => id !== 'title-0300');
    assert.deepEqual(ids(rest), [...untouched, 'title-0100', 'title-0300']);
    assert.deepEqual(
      rest
        .at(-1)
        ?.data.slice(-2)
        .map(({ title }) => title),
      ['Shown before', 'Not shown yet'],
    );
  });

  it('an update of any one column is an entry, and one that changes nothing is none', async () => {
    await addTitles(service.db, 3);
    const columns = await service
      .db('information_schema.columns')
      .where({ table_name: 'titles' })
      .pluck<string[]>('column_name');
    assert.deepEqual(columns.sort(), [...Object.keys(COLUMNS), ...OTHER_COLUMNS].sort());
    let { meta } = await get(start);
    for (const [column, change] of Object.entries(COLUMNS)) {
      await service.db.raw(`update titles set ${column} = ${change} where svc_id = 'title-0001'`);
      const page = await get(meta.next_since);
      const { svc_id, media_type, title, updated_at, has_bundles } = (await service
        .db('titles')
        .where({ svc_id: 'title-0001' })
        .first()) as Record<string, unknown>;
      assert.deepEqual(page.data, [{ svc_id, media_type, title, updated_at, has_bundles }], column);
      ({ meta } = page);
    }
    await service.db('titles').update({ title: service.db.ref('title'), updated_at: service.db.fn.now() });
    await service.db('people').insert({ svc_id: 'p', name: 'P' });
    await service.db('collections').insert({ svc_id: 'c', name: 'C' });
    assert.deepEqual(await get(meta.next_since), { data: [], meta });
  });

  it('a follower costs one query beside the one for its key', async () => {
    await addTitles(service.db, 1);
    const queries = service.queries.length;
    const { meta } = await get(start);
    assert.equal(service.queries.length, queries + 2);
    await get(meta.next_since);
    assert.equal(service.queries.length, queries + 4);
    // A position of the client's own, past the newest entry, takes two more queries.
    await get(Date.now() / 1000);
    assert.equal(service.queries.length, queries + 8);
  });

  it('a since that is missing or malformed is refused with a problem of its own', async () => {
    for (const [query, code, detail] of [
      ['?Since=1795218005', 'missing_since', /^The query parameter since is required/],
      ['?since=+1795218005', 'invalid_since', /^since is not a number/],
      ['?since[]=1795218005', 'missing_since', /^The query parameter since is required/],
      [`?since=${'1'.repeat(5000)}`, 'invalid_since', /^since is longer than 64 characters/],
    ] as const) {
      assertProblem(await service.get(`/api/v1/changes${query}`), code, { detail });
    }
  });
});
