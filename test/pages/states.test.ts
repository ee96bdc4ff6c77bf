import assert from 'node:assert/strict';
import { suspendDeveloper } from '../../src/developers/developers.js';
import { signInOperator } from '../support/http/operator.js';
import { signIn, Visitor } from '../support/http/visitor.js';
import { testWorld } from '../support/world.js';
import { crawl, type Seen } from './crawl.js';
import { operatorPages, PAGES, settingsPages } from './pages.js';
import { PEOPLE, type Person } from './people.js';

/** Paths of the router that lead to nothing: of a key that nobody has, and of a link that nobody was given. */
const isGone = ({ path, reply: { status } }: Seen): boolean =>
  (status === 404 && path.includes('svc_ZZZZZZZZ')) || (status === 403 && /^\/sign-in\/.*f{64}$/.test(path));

describe('the pages in every state', () => {
  const world = testWorld({ service: { settings: { METRICS_ADDRESS: '127.0.0.1:0' } } });
  const people = new Map<string, Person>();

  before(async () => {
    for (const [name, create] of Object.entries(PEOPLE)) people.set(name, await create(world.db));
  });

  /** Fails for an answer that is no page. @returns how many answers have each status */
  async function count(seen: AsyncIterable<Seen>): Promise<Record<number, number>> {
    const statuses: Record<number, number> = {};
    for await (const each of seen) {
      const { status, text } = each.reply;
      statuses[status] = (statuses[status] ?? 0) + 1;
      assert.ok(status < 400 || [400, 422].includes(status) || isGone(each), `${each.path}: ${status} ${text}`);
    }
    return statuses;
  }

  it('a visitor finds no fault in the public pages and in the answers to forms with wrong values', async () => {
    await count(crawl(new Visitor(world.service.url), PAGES));
  });

  for (const [name, nextPages] of Object.entries({ nothing: 0, one: 0, many: 10 })) {
    it(`a developer who has ${name} finds no fault in the settings, their lists by each filter and their forms`, async () => {
      const { developerId, prefix } = people.get(name) ?? assert.fail(name);
      const visitor = await signIn(world.service, developerId);
      const paths = settingsPages(prefix);
      const { 200: pages = 0, 422: mistakes = 0 } = await count(crawl(visitor, paths));
      assert.ok(pages >= paths.length / 2 + nextPages && mistakes > 0, `${pages} pages, ${mistakes} mistakes`);
    });

    it(`an operator finds no fault in the pages about a developer who has ${name}`, async () => {
      const { developerId, prefix } = people.get(name) ?? assert.fail(name);
      const paths = operatorPages({ id: String(developerId), prefix });
      const { 200: pages = 0 } = await count(crawl(await signInOperator(world.service), paths));
      assert.ok(pages > paths.length / 2, `${pages} pages`);
    });
  }

  it('a suspended developer finds no fault in what can still be read', async () => {
    const { developerId, prefix } = await PEOPLE.one(world.db);
    const visitor = await signIn(world.service, developerId);
    await suspendDeveloper(world.db, developerId);
    for await (const { path, reply } of crawl(visitor, settingsPages(prefix)))
      assert.ok([200, 303, 403, 422].includes(reply.status), `${path}: ${reply.status}`);
  });
});
