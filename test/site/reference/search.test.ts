import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import type { Locator, Page, Route } from 'playwright-core';
import { ERROR_CODES } from '../../../src/errors.js';
import type { Guide } from '../../../src/site/guides/guide-files.js';
import { operationsOf, resolve, type Contract } from '../../../src/site/reference/contract.js';
import { generateApiKey } from '../../../src/keys/api-key.js';
import { createSearch, MAX_QUERY, type Search } from '../../../src/site/search/search.js';
import { listEntries } from '../../../src/site/search/search-index.js';
import { eventually } from '../../support/eventually.js';
import { ROOT } from '../../support/guides.js';
import { startBrowser, type TestBrowser, type View, type WatchedPage } from '../../support/programs/browser.js';
import { skipWithout } from '../../support/programs/skip.js';
import { CHROMIUM, findProgram } from '../../support/programs/system-program.js';
import { send } from '../../support/request.js';
import { serveWithoutDatabase } from '../site-alone.js';
import { assertFits } from '../visits.js';

const contract = JSON.parse(readFileSync(new URL('generated/openapi.json', ROOT), 'utf8')) as Contract;

const GUIDE: Guide = {
  name: 'cooking',
  title: 'Cooking with keys',
  description: 'How to cook.',
  audience: 'developers',
  text: 'Take a **pan**.\n\n## Rate limits in the kitchen\n\nOne `egg` a minute.\n\n```sh\nfry --eggs 2\n```\n',
};

const PHONE: View = { width: 390, height: 844 };

const SCRIPTLESS_PHONE: View = { ...PHONE, javaScript: false };

const ATTACK = '"><img src=x onerror=alert(1)>';

describe('the search', () => {
  let search: Search;

  before(async () => {
    search = createSearch(await listEntries(contract, [GUIDE]));
  });

  /** @returns the name and the address of the first result */
  function best(query: string): { name: string; address: string } {
    const { name, address } = search(query)[0]?.found[0]?.entry ?? assert.fail(`nothing for ${query}`);
    return { name, address };
  }

  it('every operation, parameter, field, header, schema and error code is found first by its own name', () => {
    const { schemas } = contract.components;
    const operations = operationsOf(contract);
    const names = [
      ...operations.flatMap(({ operationId, parameters = [] }) => [
        operationId,
        ...parameters.map((parameter) => resolve(contract, parameter).part.name),
      ]),
      ...operations.flatMap(({ responses }) =>
        Object.values(responses).flatMap((response) => Object.keys(resolve(contract, response).part.headers ?? {})),
      ),
      ...Object.entries(schemas).flatMap(([name, { properties = {} }]) => [name, ...Object.keys(properties)]),
      ...Object.keys(ERROR_CODES),
    ];
    const spelled = (text: string): string => text.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
    for (const name of new Set(names)) {
      const { found } = search(name)[0] ?? assert.fail(name);
      const { entry } = found[0] ?? assert.fail(name);
      const known = [entry.name, ...(entry.aliases ?? [])].map(spelled);
      assert.ok(known.includes(spelled(name)), `${name} finds ${entry.name}`);
    }
  });

  it('a name counts more than its beginning, that more than a word of it, and all of them more than the text', () => {
    const found = search('since').flatMap((group) => group.found.map(({ entry }) => entry.name));
    assert.equal(found[0], 'since');
    // Each pair is of one group.
    for (const [better, worse] of [
      ['since', 'next_since'],
      ['next_since', 'data'],
      ['since_out_of_window', 'missing_since'],
    ] as const) {
      const places = [found.indexOf(better), found.indexOf(worse)] as const;
      assert.ok(places[0] !== -1 && places[0] < places[1], `${better} before ${worse}: ${found.join(', ')}`);
    }
    assert.equal(best('limit exceeded').name, 'rate_limit_exceeded');
    assert.equal(best('429').address, '/docs#error-rate_limit_exceeded');
  });

  it('a name is found in any spelling', () => {
    for (const query of ['next_since', 'nextSince', 'next since', 'NEXT-SINCE', ' next  since '])
      assert.equal(best(query).address, '/docs#schema-ChangesMeta-next_since', query);
  });

  it('a guide is found by its title, its headings, its text and its code', () => {
    assert.equal(best('cooking with keys').address, '/docs/guides/cooking');
    assert.equal(best('kitchen').address, '/docs/guides/cooking#rate-limits-in-the-kitchen');
    assert.equal(best('egg minute').name, 'Rate limits in the kitchen');
    assert.equal(best('fry --eggs').name, 'Rate limits in the kitchen');
  });

  it('questions of somebody without a key lead to the parts of the landing page, and usual words to the chapter that they mean', () => {
    for (const [address, queries] of [
      ['/#key', ['get a key', 'how to get a key', 'How do I get an API key?', 'sign up', 'signup', 'register']],
      ['/#plans', ['plans', 'price', 'pricing', 'plans and limits']],
      ['/#first-call', ['sample', 'quickstart']],
      ['/llms.txt', ['llms', 'llms.txt']],
      ['/docs#following-the-changes', ['pagination', 'webhook', 'webhooks', 'following the changes']],
      ['/docs#versions', ['changelog']],
      ['/docs#rate-limits', ['limits', 'quota']],
      ['/docs#error-rate_limit_exceeded', ['too many requests']],
    ] as const) {
      for (const query of queries) assert.equal(best(query).address, address, query);
    }
  });

  it('words that say little count only in a query without others, and are marked only within a whole phrase', () => {
    assert.equal(best('what is in the kitchen').name, 'Rate limits in the kitchen');
    assert.equal(best('of').address, '/docs#error-since_out_of_window');
    const marked = search('a pan of')
      .flatMap(({ found }) => found)
      .flatMap(({ snippet }) => snippet.filter(({ isMatch }) => isMatch).map(({ text }) => text));
    assert.deepEqual([...new Set(marked)], ['pan']);
  });

  it('a snippet shows the text around the match and marks it', () => {
    assert.deepEqual(search('egg a minute')[0]?.found[0]?.snippet, [
      { text: 'One ', isMatch: false },
      { text: 'egg a minute', isMatch: true },
      { text: '. fry --', isMatch: false },
      { text: 'egg', isMatch: true },
      { text: 's 2', isMatch: false },
    ]);
  });

  it('a query without letters or digits, or with a word that is nowhere, finds nothing', () => {
    for (const query of ['', '  ', '.*', 'since zzzz', '((((']) assert.deepEqual(search(query), [], query);
  });

  it('only the beginning of a long query counts', () => {
    assert.deepEqual(search(`since${' '.repeat(MAX_QUERY)}zzzz`), search('since'));
  });
});

describe('the search in Chromium', () => {
  let url: string;
  let stop: () => void;
  let browser: TestBrowser;
  /** Pages with and without scripts, on wide and narrow screens. Each is opened once: a new one costs a process. */
  const opened = new Map<View | undefined, WatchedPage>();
  let watched: WatchedPage;

  before(async function () {
    const program = findProgram(CHROMIUM) ?? skipWithout('Chromium', this);
    const { url: served, server } = await serveWithoutDatabase();
    url = served;
    stop = () => server.close();
    browser = await startBrowser(program, url);
  });

  after(async () => {
    // Undefined if the tests were skipped.
    await (browser as TestBrowser | undefined)?.close();
    (stop as (() => void) | undefined)?.();
  });

  async function visit(path: string, view?: View): Promise<Page> {
    watched = opened.get(view) ?? (await browser.newPage(view));
    opened.set(view, watched);
    await watched.page.unrouteAll();
    await watched.open(path);
    return watched.page;
  }

  const chosen = (page: Page): Promise<string> =>
    page.evaluate(() => {
      const id = document.activeElement?.getAttribute('aria-activedescendant') ?? '';
      return document.getElementById(id)?.querySelector('b')?.textContent ?? '';
    });

  const nameOf = (option: Locator): Promise<string> => option.locator('b').innerText();

  /** Waits until the choice of the search is a result. */
  const untilChosen = (page: Page, name: string): Promise<unknown> =>
    eventually(`${name} is chosen`, async () => (await chosen(page)) === name);

  /** Waits until the choice is the result at a place of the list, which may still be replaced by that of a later query. */
  const untilChosenAt = (page: Page, place: (options: Locator) => Locator): Promise<unknown> =>
    eventually(
      'the result is chosen',
      async () => (await chosen(page)) === (await nameOf(place(page.getByRole('option')))),
    );

  // The reference has the search beside its text, and other pages in their header.
  for (const path of ['/docs', '/revoke-leaked-key']) {
    it(`the search of ${path} is opened, used and closed with the keyboard alone`, async () => {
      const page = await visit(path);
      const dialog = page.getByRole('dialog');
      await page.getByRole('link', { name: 'Settings', exact: true }).focus();
      for (const keys of ['/', 'Control+k', 'Meta+k']) {
        await page.keyboard.press(keys);
        await page.getByRole('combobox').waitFor();
        await page.keyboard.press('Escape');
        await dialog.waitFor({ state: 'hidden' });
        assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'Settings');
      }
      await page.keyboard.press('/');
      await page.keyboard.type('rate_limit_ex');
      await untilChosen(page, 'rate_limit_exceeded');
      assert.equal(await page.getByRole('combobox').getAttribute('aria-expanded'), 'true');
      await page.keyboard.press('ArrowDown');
      await untilChosenAt(page, (options) => options.nth(1));
      await page.keyboard.press('ArrowUp');
      await page.keyboard.press('ArrowUp');
      await untilChosenAt(page, (options) => options.last());
      await page.keyboard.press('ArrowDown');
      await untilChosen(page, 'rate_limit_exceeded');
      await page.keyboard.press('Enter');
      await page.waitForURL('**/docs#error-rate_limit_exceeded');
      await dialog.waitFor({ state: 'hidden' });
      assert.ok(await page.locator('#error-rate_limit_exceeded').isVisible());
      watched.assertNoFault();
    });
  }

  it('a result of the search that is folded is unfolded and brought into view', async () => {
    const page = await visit('/docs');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.keyboard.type('oldest_since');
    await page.getByRole('option', { name: 'oldest_since field · Problem' }).click();
    const field = page.locator('#schema-Problem-oldest_since');
    await field.getByText('will be accepted for another minute').waitFor();
    assert.ok(((await field.boundingBox())?.y ?? -1) > 0);
  });

  /** Types another query while the answer to a first one is held back. @returns the page and the requests that are held */
  async function typeTwice(heldPattern: string): Promise<{ page: Page; held: readonly Route[] }> {
    const page = await visit('/docs/guides');
    const held: Route[] = [];
    await page.route(heldPattern, async (route) => {
      held.push(route);
    });
    await page.keyboard.press('/');
    await page.keyboard.type('getMe');
    await eventually('the first query is sent', () => held.length > 0);
    await page.keyboard.press('Control+a');
    await page.keyboard.type('getStats');
    return { page, held };
  }

  it('Enter opens the best result of what was typed last, even before any result is shown', async () => {
    const { page, held } = await typeTwice('**/docs/search?*');
    await page.keyboard.press('Enter');
    await eventually('the last query is sent', () => held.some((route) => route.request().url().endsWith('=getStats')));
    for (const route of held) await route.continue().catch(() => undefined);
    await page.waitForURL('**/docs#getStats');
  });

  it('an arrow key moves among the results of what was typed last, even before they are shown', async () => {
    const { page, held } = await typeTwice('**/docs/search?*');
    await page.keyboard.press('ArrowDown');
    await eventually('the last query is sent', () => held.some((route) => route.request().url().endsWith('=getStats')));
    for (const route of held) await route.continue().catch(() => undefined);
    await page.getByRole('option').nth(1).waitFor();
    await untilChosenAt(page, (options) => options.nth(1));
  });

  it('results of an earlier query that arrive late are not shown', async () => {
    const { page, held } = await typeTwice('**/docs/search?q=getMe');
    await untilChosen(page, "Get the catalogue's totals");
    for (const route of held) await route.continue().catch(() => undefined);
    // By the time a later request is answered, so is that one.
    await page.evaluate(async () => (await fetch('/docs/search?q=later')).text());
    assert.equal(await chosen(page), "Get the catalogue's totals");
  });

  it('a search without results says what to do, and one that fails says so', async () => {
    const page = await visit('/docs/guides');
    await page.keyboard.press('/');
    await page.keyboard.type('qqqq');
    const status = page.getByRole('dialog').getByRole('status');
    await status.getByText('No results for “qqqq”. Check the spelling').waitFor();
    assert.equal(await page.getByRole('option').count(), 0);
    await page.context().setOffline(true);
    await page.keyboard.type('x');
    await status.getByText('The search did not respond.').waitFor();
    await page.context().setOffline(false);
  });

  it('the key / is typed in a field, and no longer opens the search once that is turned off', async () => {
    const page = await visit('/docs/guides');
    await page.keyboard.press('Control+k');
    await page.keyboard.type('/api');
    assert.equal(await page.getByRole('combobox').inputValue(), '/api');
    await page.getByRole('checkbox', { name: 'Open with /' }).uncheck();
    await page.reload();
    await page.keyboard.press('/');
    assert.equal(await page.getByRole('dialog').count(), 0);
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox').waitFor();
    await page.getByRole('checkbox', { name: 'Open with /' }).check();
  });

  it('the search is accessible while it shows results, on wide and narrow screens', async () => {
    const page = await visit('/docs/guides');
    await page.keyboard.press('/');
    await page.keyboard.type('key');
    await page.getByRole('option').first().waitFor();
    await assertFits(page, { part: 'dialog' });
    watched.assertNoFault();
  });

  it('without scripts, the form beside a guide leads to a page with results in groups', async () => {
    const page = await visit('/docs/guides/operators/install', SCRIPTLESS_PHONE);
    await page.getByRole('searchbox').fill('has_more');
    await page.getByRole('searchbox').press('Enter');
    await page.waitForURL('**/docs/search?q=has_more');
    await page.getByRole('heading', { name: 'Parameters and fields' }).waitFor();
    assert.equal(await page.getByRole('searchbox').inputValue(), 'has_more');
    assert.equal(await page.locator('mark').first().innerText(), 'has_more');
    await page.getByRole('link', { name: 'has_more' }).first().click();
    await page.waitForURL('**/docs#schema-ChangesMeta-has_more');
    assert.ok(await page.locator('#schema-ChangesMeta-has_more').isVisible());
  });

  it('every page has one way to the search in its header or in its text, with and without scripts', async () => {
    for (const view of [PHONE, SCRIPTLESS_PHONE]) {
      for (const path of ['/', '/sign-in', '/docs/guides', '/docs/guides/changes', '/docs/search']) {
        const page = await visit(path, view);
        const ways = ['.search-open:visible', 'main [type="search"]:visible'].join();
        assert.equal(await page.locator(ways).count(), 1, `${path} ${view === PHONE ? 'with' : 'without'} scripts`);
      }
    }
    const page = await visit('/', SCRIPTLESS_PHONE);
    await page.getByRole('link', { name: 'Search' }).click();
    await page.getByRole('searchbox').waitFor();
  });

  it('the key / leads to the field of a page that has one', async () => {
    const page = await visit('/docs/search?q=key');
    await page.keyboard.press('/');
    assert.equal(await page.evaluate(() => (document.activeElement as HTMLInputElement).value), 'key');
    assert.equal(await page.getByRole('dialog').count(), 0);
    await page.keyboard.type('since');
    assert.equal(await page.getByRole('searchbox').inputValue(), 'since');
  });

  it('on a phone, the search and the contents stay at the top of a long page, and the contents close once they are used', async () => {
    const page = await visit('/docs#getTitle', PHONE);
    const bar = page.locator('.sidebar');
    const topOf = async (id: string): Promise<number> => (await page.locator(`#${id}`).boundingBox())?.y ?? NaN;
    const bottom = async (): Promise<number> => {
      const { y, height } = (await bar.boundingBox()) ?? assert.fail();
      assert.equal(y, 0);
      return height;
    };
    assert.ok((await topOf('getTitle')) >= (await bottom()), 'the bar covers the target');
    await bar.getByRole('button', { name: 'Search' }).click();
    await page.getByRole('combobox').waitFor();
    await page.keyboard.press('Escape');
    await bar.getByText('Contents').click();
    await bar.locator('[aria-current="location"]', { hasText: 'Look up a title' }).waitFor();
    await bar.getByRole('link', { name: 'Schemas' }).click();
    await page.locator('.sidebar-links').waitFor({ state: 'hidden' });
    await page.waitForURL('**/docs#schemas');
    assert.ok((await topOf('schemas')) >= (await bottom()) && (await topOf('schemas')) < 160);
    watched.assertNoFault();
  });

  it('a search for a key leads to an address without it, and no answer to a search is stored', async () => {
    const { key, prefix } = generateApiKey();
    for (const query of [key, key.slice(prefix.length + 1), `${'x '.repeat(60)}${key}`]) {
      const { status, headers, text } = await send(url, `/docs/search?q=${encodeURIComponent(query)}`);
      assert.deepEqual(
        [status, headers.location, headers['cache-control']],
        [303, '/docs/search?key-refused', 'no-store'],
      );
      assert.ok(!text.includes(key.slice(-38)));
    }
    const { text } = await send(url, '/docs/search?key-refused');
    assert.ok(text.includes('That looks like an API key. Keys are secret: do not search for them.'));
    const { headers } = await send(url, '/docs/search?q=limits', { headers: { 'accept-encoding': 'gzip' } });
    assert.deepEqual([headers['cache-control'], headers['content-encoding']], ['no-store', undefined]);
  });

  it('malformed encoding in the address of a section is no error', async () => {
    await visit('/docs#%E0%A4%A');
    watched.assertNoFault();
  });

  it('a query is shown as text, and a long or malformed one is answered too', async () => {
    await visit('/docs/search');
    for (const query of [ATTACK, 'a'.repeat(5_000), '%ff%00', ATTACK.repeat(3)]) {
      const { status, text } = await send(
        url,
        `/docs/search?q=${query === '%ff%00' ? query : encodeURIComponent(query)}`,
      );
      assert.equal(status, 200);
      assert.ok(!text.includes('<img'), query);
    }
    assert.equal(await watched.open(`/docs/search?q=${encodeURIComponent(ATTACK)}`), 200);
    watched.assertNoFault();
  });
});
