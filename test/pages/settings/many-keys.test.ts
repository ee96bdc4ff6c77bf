import assert from 'node:assert/strict';
import { TABS } from '../../../src/pages/settings/settings-page.js';
import { signIn, type Visitor } from '../../support/http/visitor.js';
import { addHistory, addKeys } from '../../support/keys/many-keys.js';
import type { Reply } from '../../support/request.js';
import { testWorld } from '../../support/world.js';

/** Past keys and sessions: several pages. */
const MANY = 200;

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
      assert.ok(Math.max(0, ...rowsOf(reply)) <= 50 && reply.text.length < 64 * 1024, path);
    }
  });

  it('each list has links from its first page to its last and back', async () => {
    for (const path of ['keys', 'usage', 'events', 'sessions'].map((tab) => `/settings/${tab}`)) {
      const first = await get(path);
      assert.equal(Math.max(...rowsOf(first)), 50, path);
      assert.ok(
        first.text.includes(`<a href="${path}?page=2" rel="next">`) && !first.text.includes('rel="prev"'),
        path,
      );
      const second = await get(`${path}?page=2`);
      assert.equal(Math.max(...rowsOf(second)), 50, path);
      assert.ok(second.text.includes(`<a href="${path}" rel="prev">`), path);
      assert.ok(second.text.includes(`<a href="${path}?page=3" rel="next">`), path);
      let [last, number] = [second, 2];
      while (last.text.includes('rel="next"')) last = await get(`${path}?page=${(number += 1)}`);
      assert.ok(number >= MANY / 50 && last.text.includes(`<a href="${path}?page=${number - 1}" rel="prev">`), path);
      const after = await visitor.get(`${path}?page=${MANY}`);
      assert.equal(after.status, 404, path);
      assert.ok(after.text.includes(`<a href="${path}">Go to its first page</a>`), after.text);
    }
    // All lists read the number of the page alike.
    for (const page of ['-1', '0', '1.5', '9999999', 'x', '1 or 1=1']) {
      const { text } = await get(`/settings/keys?page=${encodeURIComponent(page)}`);
      assert.ok(text.includes('<a href="/settings/keys?page=2" rel="next">'), page);
    }
  });

  it('inactive keys are listed once each, after the active ones', async () => {
    const owner = await world.newDeveloper();
    const by = await signIn(world.service, owner);
    await addKeys(world.db, owner, 30_000, 30_009, 'null');
    await addKeys(world.db, owner, 30_010, 30_109, 'now()');
    const listed = async (page: number): Promise<string[]> => {
      const { text } = await get(`/settings/keys?page=${page}`, by);
      return Array.from(text.matchAll(/<th scope="row">.*?<code>svc_000(\d+)/g), ([, number = '']) => number);
    };
    const numbers = (from: number, to: number): string[] =>
      Array.from({ length: from - to + 1 }, (_, i) => String(from - i));
    assert.deepEqual(await listed(1), [...numbers(30_009, 30_000), ...numbers(30_109, 30_070)]);
    assert.deepEqual(await listed(2), numbers(30_069, 30_020));
    assert.deepEqual(await listed(3), numbers(30_019, 30_010));
    assert.ok(!(await get('/settings/keys?page=3', by)).text.includes('You have no active keys'));
  });
});
