import assert from 'node:assert/strict';
import { TABS } from '../../../src/pages/settings/settings-page.js';
import { signIn, type Visitor } from '../../support/http/visitor.js';
import { addHistory } from '../../support/keys/many-keys.js';
import type { Reply } from '../../support/request.js';
import { nextPageOf } from '../page-html.js';
import { testWorld } from '../../support/world.js';

/** Past keys and sessions: several pages. */
const MANY = 200;

const MOST_CHARACTERS = 64 * 1024;

describe('the settings of a developer with many past keys', () => {
  const world = testWorld({ service: true });
  let developerId: number;
  let visitor: Visitor;

  before(async () => {
    developerId = await world.newDeveloper();
    visitor = await signIn(world.service, developerId);
    await addHistory(world.db, developerId, MANY);
  });

  async function get(path: string, by = visitor): Promise<Reply> {
    const reply = await by.get(path);
    assert.equal(reply.status, 200, path);
    return reply;
  }

  /** The rows of the last table of a page. */
  function rowTextsOf({ text }: Reply): string[] {
    const [table = ''] = text.slice(text.lastIndexOf('<table')).split('<tfoot');
    return Array.from(table.matchAll(/<tr><th scope="row">.*?<\/tr>/gs), ([row]) => row);
  }

  /** The numbers of rows of the tables of a page. */
  function rowsOf({ text }: Reply): number[] {
    return Array.from(text.matchAll(/<tbody>(.*?)<\/tbody>/gs), ([, body = '']) => body.split('<tr>').length - 1);
  }

  it('a page shows at most 50 rows, with as many queries as that of a new developer', async () => {
    const other = await signIn(world.service, await world.newDeveloper());
    for (const { path } of TABS) {
      const count = async (by: Visitor): Promise<number> => {
        const before = world.service.queries.length;
        await get(path, by);
        return world.service.queries.length - before;
      };
      assert.equal(await count(visitor), await count(other), path);
      const reply = await get(path);
      assert.ok(Math.max(0, ...rowsOf(reply)) <= 50, `${path}: ${rowsOf(reply).join()} rows`);
      assert.ok(reply.text.length < MOST_CHARACTERS, `${path}: ${reply.text.length} of ${MOST_CHARACTERS} characters`);
    }
  });

  it('each list has links from its first page to its last and back, whatever else the address says', async () => {
    for (const path of ['keys?q=KEY', 'usage?range=30d', 'events?key=', 'sessions'].map((tab) => `/settings/${tab}`)) {
      let page = await get(path);
      const seen = rowTextsOf(page);
      assert.ok(!page.text.includes('First page'), path);
      for (let next = nextPageOf(page); next !== undefined; next = nextPageOf(page)) {
        assert.ok(next.startsWith(`${path}${path.includes('?') ? '&' : '?'}after=`), next);
        page = await get(next);
        assert.ok(page.text.includes(`<a href="${path.replaceAll('&', '&amp;')}">First page</a>`), page.text);
        seen.push(...rowTextsOf(page));
      }
      assert.ok(seen.length >= MANY && new Set(seen).size === seen.length, `${path} ${seen.length}`);
    }
    for (const [path, last] of [
      ['keys', 'svc_ZZZZZZZZ'],
      ['events', '1999-12-31T23:59:59.000000Z,1'],
      ['sessions', '0'],
    ] as const) {
      const { status, text } = await visitor.get(`/settings/${path}?after=${last}`);
      assert.equal(status, 404, path);
      assert.ok(text.includes(`<a href="/settings/${path}">Go to its first page</a>`), text);
    }
    // Anything but a place in the list means the first page.
    for (const [path, places] of Object.entries({
      keys: ['x', '2', '-1', "svc_00000001'"],
      sessions: ['-1', '1.5', '99999999999999999', '1 or 1=1'],
      events: [
        '1',
        '2026-02-30T00:00:00Z,1',
        '0000-01-01T00:00:00Z,1',
        '2026-01-01T25:00:00Z,1',
        '2026-01-01T00:00:00Z',
      ],
    })) {
      for (const place of places) {
        const { text } = await get(`/settings/${path}?after=${encodeURIComponent(place)}`);
        assert.ok(!text.includes('First page') && text.includes('rel="next"'), place);
      }
    }
    assert.equal((await visitor.get('/settings/sessions?after=9007199254740991')).status, 200);
  });
});
