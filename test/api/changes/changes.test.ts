import assert from 'node:assert/strict';
import { fromRfc3339, toSeconds, type Micros } from '../../../src/platform/time/micros.js';
import type { Answer } from '../../../src/contract.js';
import { assertHeaders, assertProblem } from '../../support/problem.js';
import { startService, type TestService } from '../../support/service.js';
import { addTitles, changesOf, removeTitles, titleIds } from '../../support/titles.js';

type Page = Answer<'getChanges'>;

const SECOND = 1_000_000n;
const PAGE = 200;

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

  async function ask(since: string | number): Promise<Page> {
    return changesOf(await service.get(`/api/v1/changes?since=${String(since)}`));
  }

  /** Follows the feed as its documentation says, and gives the pages. */
  async function follow(since: string | number): Promise<Page[]> {
    const pages: Page[] = [];
    let next = since;
    for (;;) {
      const page = await ask(next);
      pages.push(page);
      next = page.meta.next_since;
      if (!page.meta.has_more) return pages;
      assert.ok(pages.length < 1_000, 'the feed loops');
    }
  }

  function ids(pages: readonly Page[]): string[] {
    return pages.flatMap(({ data }) => data.map(({ svc_id: id }) => id));
  }

  function update(svcId: string, title: string): Promise<unknown> {
    return service.db('titles').where({ svc_id: svcId }).update({ title }).then();
  }

  it('answers the entries after since, oldest first, and where to go on', async () => {
    await service
      .db('titles')
      .insert({ svc_id: 'b', media_type: 'series', title: 'Bé "1"', available_in_library: true });
    await service.db('titles').insert({ svc_id: 'a', media_type: 'movie', title: 'A', has_bundles: true });
    const rows = await service.db('titles').select<{ updated_at: string }[]>('updated_at').orderBy('updated_at');
    const [first = '', second = ''] = rows.map((row) => row.updated_at);
    const reply = await service.get(`/api/v1/changes?since=${start}`);
    assert.equal(reply.status, 200);
    assertHeaders(reply, {
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(reply.text)),
      'cache-control': 'private, no-cache',
      vary: 'Authorization, X-API-Key, Accept-Encoding',
      'content-encoding': undefined,
    });
    assert.deepEqual(reply.json, {
      data: [
        { svc_id: 'b', media_type: 'series', title: 'Bé "1"', updated_at: first, has_bundles: false },
        { svc_id: 'a', media_type: 'movie', title: 'A', updated_at: second, has_bundles: true },
      ],
      meta: { has_more: false, next_since: toSeconds(fromRfc3339(second)) },
    });
    assert.deepEqual(ids([await ask(toSeconds(fromRfc3339(first)))]), ['a']);
    assert.deepEqual(ids([await ask(toSeconds(fromRfc3339(first) - 1n))]), ['b', 'a']);
  });

  it('answers an empty page with the very position that was asked for', async () => {
    for (const since of [start, `${start}.5`, `${start}.000001`, `${start}.123456`]) {
      assert.deepEqual(await ask(since), { data: [], meta: { has_more: false, next_since: Number(since) } });
    }
  });

  for (const count of [PAGE - 1, PAGE, PAGE + 1, 2 * PAGE, 2 * PAGE + 1, 1_000]) {
    it(`pages through ${count} entries of one statement without loss or repeat`, async () => {
      await addTitles(service.db, count);
      const pages = await follow(start);
      assert.deepEqual(ids(pages), titleIds(count));
      assert.deepEqual(
        pages.map(({ data }) => data.length),
        Array.from({ length: Math.ceil(count / PAGE) }, (_, i) => Math.min(PAGE, count - i * PAGE)),
      );
      assert.deepEqual(
        pages.map(({ meta }) => meta.has_more),
        pages.map((_, i) => i < pages.length - 1),
      );
      assert.deepEqual(ids([await ask(pages.at(-1)?.meta.next_since ?? 0)]), []);
    });
  }

  it('pages through entries of one transaction with many statements', async () => {
    await service.db.transaction(async (transaction) => {
      for (const prefix of ['a', 'b', 'c', 'd']) await addTitles(transaction, 130, prefix);
    });
    assert.deepEqual(
      ids(await follow(start)),
      ['a', 'b', 'c', 'd'].flatMap((prefix) => titleIds(130, prefix)),
    );
  });

  it('pages through many entries within one second, from the whole second on', async () => {
    // As many statements as fit: what counts is that more than a page lies in one second.
    await addTitles(service.db, 450);
    const rows = await service.db('titles').orderBy('updated_at').pluck<string[]>('updated_at');
    const second = fromRfc3339(rows[225] ?? '') / SECOND;
    const within = rows.filter((stamp) => fromRfc3339(stamp) > second * SECOND);
    assert.ok(within.length > PAGE);
    assert.deepEqual(
      (await follow(Number(second))).flatMap(({ data }) => data.map((entry) => entry.updated_at)),
      within,
    );
  });

  it('gives positions that survive JSON to the microsecond', async () => {
    await addTitles(service.db, 600);
    let next: string = start;
    for (let page = 0; page < 3; page += 1) {
      const { text, json } = await service.get(`/api/v1/changes?since=${next}`);
      const { data } = json as Page;
      next = /"next_since":(\d{10}(?:\.\d{1,6})?)[,}]/.exec(text)?.[1] ?? assert.fail(text.slice(-100));
      assert.equal(exactMicros(next), fromRfc3339(data.at(-1)?.updated_at ?? ''));
      assert.equal(JSON.stringify(JSON.parse(next)), next);
    }
  });

  it('links to the next page where there is one, by a reference that has no key', async () => {
    await addTitles(service.db, 450);
    const [path, query] = ['/api/v1/changes', `?api_key=${service.key}&since=${start}`];
    let next: string | undefined = query;
    const seen: string[] = [];
    while (next !== undefined) {
      // The first request has its key in the query alone.
      const reply = await service.get(path + next, next === query ? { headers: {} } : {});
      const { data, meta } = changesOf(reply);
      seen.push(...data.map(({ svc_id: id }) => id));
      const expected = meta.has_more ? `<?since=${meta.next_since}>; rel="next"` : undefined;
      assertHeaders(reply, { link: expected });
      next = expected?.slice(1, expected.indexOf('>'));
    }
    assert.deepEqual(seen, titleIds(450));
  });

  it('understands a position in every notation, also with a bare plus sign', async () => {
    await addTitles(service.db, 3);
    const { data } = await ask(start);
    const micros = fromRfc3339(data[1]?.updated_at ?? '');
    const seconds = toSeconds(micros);
    const go = seconds.toExponential().replace('e+9', 'e+09');
    for (const since of [
      seconds,
      seconds.toFixed(6),
      seconds.toExponential(),
      go,
      encodeURIComponent(go),
      `${micros}e-6`,
    ]) {
      assert.deepEqual(ids([await ask(since)]), ['title-0003'], String(since));
    }
  });

  it('repeats entries, and loses none, for a client that cuts the decimals off', async () => {
    await addTitles(service.db, 150);
    const first = await ask(start);
    const cut = await ask(Math.floor(first.meta.next_since));
    const stamps = first.data.filter(
      ({ updated_at: stamp }) => toSeconds(fromRfc3339(stamp)) > Math.floor(first.meta.next_since),
    );
    assert.deepEqual(cut.data, stamps);
  });

  it('moves an entry that changes to the end, in its new state, and only there', async () => {
    await addTitles(service.db, 4);
    const [page] = await follow(start);
    await update('title-0002', 'New');
    const changed = await ask(page?.meta.next_since ?? 0);
    assert.deepEqual(
      changed.data.map((entry) => [entry.svc_id, entry.title]),
      [['title-0002', 'New']],
    );
    assert.deepEqual(ids(await follow(start)), ['title-0001', 'title-0003', 'title-0004', 'title-0002']);
  });

  it('shows an entry that changes between two pages once more, and skips none', async () => {
    await addTitles(service.db, 450);
    const first = await ask(start);
    await update('title-0100', 'Passed already');
    await update('title-0300', 'Still to come');
    const rest = await follow(first.meta.next_since);
    const expected = titleIds(450)
      .slice(PAGE)
      .filter((id) => id !== 'title-0300');
    assert.deepEqual(ids(rest), [...expected, 'title-0100', 'title-0300']);
  });

  it('stays silent about updates that change nothing, and about people and collections', async () => {
    await addTitles(service.db, 3);
    const { meta } = await ask(start);
    await service.db('titles').update({ title: service.db.ref('title'), updated_at: service.db.fn.now() });
    await addTitles(service.db, 0);
    await service.db('titles').where({ svc_id: 'title-0001' }).update({ media_type: 'movie', has_bundles: false });
    await service.db('people').insert({ svc_id: 'p', name: 'P' });
    await service.db('collections').insert({ svc_id: 'c', name: 'C' });
    assert.deepEqual(await ask(meta.next_since), { data: [], meta });
  });

  it('shows nothing of a transaction before it commits, and all of it then', async () => {
    await addTitles(service.db, 2, 'before');
    const writer = await service.db.transaction();
    await addTitles(writer, 250, 'during');
    const early = await follow(start);
    assert.deepEqual(ids(early), titleIds(2, 'before'));
    await writer.commit();
    const late = await follow(early.at(-1)?.meta.next_since ?? 0);
    assert.deepEqual(ids(late), titleIds(250, 'during'));
  });

  it('loses and repeats nothing for a follower while four writers are at work', async () => {
    const progress = { writing: true };
    const writers = Promise.all(
      ['a', 'b', 'c', 'd'].map(async (prefix) => {
        for (let i = 0; i < 40; i += 1) {
          await service.db.transaction(async (transaction) => {
            await addTitles(transaction, i % 10 === 0 ? 230 : 1, `${prefix}${i}`);
            // Between its stamps and its commit, where another writer would overtake it if it could.
            await transaction.raw('select pg_sleep(0.002)');
          });
        }
      }),
    ).finally(() => {
      progress.writing = false;
    });
    const seen: string[] = [];
    let since: number | string = start;
    for (let last = false; !last;) {
      last = !progress.writing;
      const pages = await follow(since);
      seen.push(...pages.flatMap(({ data }) => data.map((entry) => entry.updated_at)));
      since = pages.at(-1)?.meta.next_since ?? since;
    }
    await writers;
    const all = await service.db('titles').orderBy('updated_at').pluck<string[]>('updated_at');
    assert.equal(all.length, 4 * (4 * 230 + 36));
    assert.deepEqual(seen, all);
  });

  it('needs one query beside the one for the key, wherever a follower stands', async () => {
    await addTitles(service.db, 1);
    const queries = service.queries.length;
    const { meta } = await ask(start);
    assert.equal(service.queries.length, queries + 2);
    await ask(meta.next_since);
    assert.equal(service.queries.length, queries + 4);
    // Past the newest entry, at a position of the client's own, it takes two more to be sure of.
    await ask(Date.now() / 1000);
    assert.equal(service.queries.length, queries + 8);
  });

  it('loses nothing to a client that begins now, while a writer has stamped and not committed yet', async () => {
    await addTitles(service.db, 1, 'before');
    const writer = await service.db.transaction();
    await writer('titles').insert({ svc_id: 'stamped-before', media_type: 'movie', title: 'Stamped before' });
    const begin = Date.now() / 1000;
    const first = await ask(begin);
    assert.deepEqual(first.data, []);
    assert.ok(first.meta.next_since < begin);
    await writer.commit();
    const second = await ask(first.meta.next_since);
    assert.deepEqual(ids([second]), ['stamped-before']);
    // With nobody at work, a position of the client's own stays as it is.
    const later = Date.now() / 1000;
    assert.deepEqual(await ask(later), { data: [], meta: { has_more: false, next_since: later } });
  });

  for (const [what, query, code, detail] of [
    ['missing', '', 'missing_since', /^The query parameter since is required/],
    ['missing beside others', '?Since=1795218005', 'missing_since', /^The query parameter since is required/],
    ['empty', '?since=', 'invalid_since', /^since is empty/],
    ['without a value', '?since', 'invalid_since', /^since is empty/],
    ['repeated', '?since=1795218005&since=1795218005', 'invalid_since', /^since is given more than once/],
    ['NaN', '?since=NaN', 'invalid_since', /^since is not a number/],
    ['Infinity', '?since=-Infinity', 'invalid_since', /^since is not a number/],
    ['hexadecimal', '?since=0x6B0106B0', 'invalid_since', /^since is not a number/],
    ['signed', '?since=%2B1795218005', 'invalid_since', /^since is not a number/],
    ['signed, bare', '?since=+1795218005', 'invalid_since', /^since is not a number/],
    ['true', '?since=true', 'invalid_since', /^since is not a number/],
    ['an array', '?since[]=1795218005', 'missing_since', /^The query parameter since is required/],
    ['a date', '?since=2026-11-20T23%3A40%3A05Z', 'invalid_since', /an ISO date is not accepted/],
    ['negative', '?since=-1', 'invalid_since', /^since is negative/],
    ['huge', '?since=1e400', 'invalid_since', /looks like milliseconds/],
    ['very long', `?since=${'1'.repeat(5000)}`, 'invalid_since', /^since is longer than 64 characters/],
  ] as const) {
    it(`refuses since with a problem of its own: ${what}`, async () => {
      const reply = await service.get(`/api/v1/changes${query}`);
      assertProblem(reply, code, { detail, headers: { vary: 'Authorization, X-API-Key' } });
      assert.match(String(reply.headers.ratelimit), /^"minute";r=\d+;t=\d+, "day";r=\d+;t=\d+$/);
    });
  }
});

/** Seconds as JSON writes them, in microseconds, without going through a float. */
function exactMicros(seconds: string): Micros {
  const [whole = '', fraction = ''] = seconds.split('.');
  return BigInt(whole) * SECOND + BigInt(fraction.padEnd(6, '0'));
}
