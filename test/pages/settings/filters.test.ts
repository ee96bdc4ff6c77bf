import assert from 'node:assert/strict';
import { signIn, type Visitor } from '../../support/http/visitor.js';
import { around, readPage, textOf, within, type ReadPage } from '../../support/pages/page.js';
import { testWorld } from '../../support/world.js';
import { settingsPages, UNKNOWN } from '../pages.js';
import { PEOPLE, type Person } from '../people.js';

const ATTACK = '<script>alert("x")</script>';

describe('the filters of the settings', () => {
  const world = testWorld({ service: true });
  let person: Person;
  let visitor: Visitor;

  before(async () => {
    person = await PEOPLE.one(world.db);
    visitor = await signIn(world.service, person.developerId);
  });

  /** @returns what a page with an address says about filters that were left out */
  async function leftOutOf(path: string, query: Record<string, string>): Promise<string> {
    const { status, text } = await visitor.get(`${path}?${new URLSearchParams(query)}`);
    assert.equal(status, 200, path);
    const notices = readPage(text).elements.filter((element) => element.getAttribute('class')?.startsWith('notice'));
    return notices.map(textOf).join();
  }

  /** @returns the filters of a page that have a fixed set of values, each with one of them */
  function filtersOf(page: ReadPage): [name: string, value: string][] {
    return page
      .named('input', 'select')
      .filter((control) => around(control, 'form')?.getAttribute('class') === 'filter')
      .filter((control) => !['request', 'q'].includes(control.getAttribute('name') ?? ''))
      .map((control) => {
        const [option] = within(control, 'option').filter(
          (each) => !['', 'value'].includes(each.getAttribute('value') ?? ''),
        );
        const value = (option ?? control).getAttribute('value') ?? '';
        return [control.getAttribute('name') ?? '', value || '2026-11-28T14:00'];
      });
  }

  it('each page names the filters of its address that do not apply, and no others', async () => {
    const seen: string[] = [];
    for (const path of settingsPages(person.prefix)) {
      const { status, text } = await visitor.get(path);
      if (status !== 200) continue;
      const filters = filtersOf(readPage(text));
      const names = filters.map(([name]) => name);
      seen.push(...names.map((name) => `${path} ${name}`));
      const valid = Object.fromEntries(filters);
      const assertNames = async (wrong: readonly string[], value: string): Promise<void> => {
        const said = await leftOutOf(path, { ...valid, ...Object.fromEntries(wrong.map((name) => [name, value])) });
        const named = Array.from(said.matchAll(/The filter (\w+)=(.*?) was left out: /g), ([, ...named]) => named);
        assert.deepEqual(named.sort(), wrong.map((name) => [name, value]).sort(), path);
      };
      await assertNames([], '');
      for (const name of names) await assertNames([name], 'nonsense');
      const foreign = world.service.key.slice(0, 12);
      for (const value of ['constructor', ATTACK, '2026-02-30T00:00', foreign]) await assertNames(names, value);
    }
    assert.deepEqual(seen.sort(), [
      ...['key', 'kind'].map((name) => `/settings/events ${name}`),
      ...['key', 'operation', 'outcome', 'range'].map((name) => `/settings/usage ${name}`),
      ...['code', 'hour', 'key', 'operation'].map((name) => `/settings/usage/failed ${name}`),
    ]);
  });

  it('a key that was pasted as a filter is not shown', async () => {
    const { text } = await visitor.get(`/settings/events?key=${world.service.key}`);
    assert.ok(text.includes(`key=${world.service.key.slice(0, 12)}`) && !text.includes(world.service.key), text);
  });

  it('no file is exported for a filter that does not apply', async () => {
    const { status, text } = await visitor.get(`/settings/usage.csv?key=${UNKNOWN.prefix}&range=7d`);
    assert.equal(status, 404);
    assert.ok(text.includes(`href="/settings/usage?key=${UNKNOWN.prefix}&amp;range=7d"`), text);
  });
});
