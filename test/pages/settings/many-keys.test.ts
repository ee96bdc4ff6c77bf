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

  it('each list leads back to its first page, from the next and from behind its end, whatever else the address says', async () => {
    for (const [path, last] of [
      ['keys?q=KEY', 'svc_ZZZZZZZZ'],
      ['usage?range=30d', 'svc_ZZZZZZZZ'],
      ['events?key=', '1999-12-31T23:59:59.000000Z,1'],
      ['sessions?', '0'],
    ] as const) {
      const address = `/settings/${path}`;
      const first = `<a href="${address.replace(/\?$/, '')}">`;
      const page = await get(address);
      const next = await get(nextPageOf(page) ?? assert.fail(path));
      const [row = assert.fail(path)] = page.text.match(/<tr><th scope="row">(?!Total).*?<\/tr>/gs)?.slice(-1) ?? [];
      assert.ok(next.text.includes(`${first}First page</a>`) && !next.text.includes(row), path);
      const { status, text } = await visitor.get(`${address}&after=${last}`);
      assert.deepEqual([status, text.includes(`${first}Go to its first page</a>`)], [404, true], path);
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
