import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { ERROR_CODES } from '../../../src/errors.js';
import { generateApiKey } from '../../../src/keys/api-key.js';
import type { Guide } from '../../../src/site/guides/guide-files.js';
import { operationsOf, resolve, type Contract } from '../../../src/site/reference/contract.js';
import { createSearch, MAX_QUERY, type Search } from '../../../src/site/search/search.js';
import { listEntries, type Entry } from '../../../src/site/search/search-index.js';
import { ROOT } from '../../support/guides.js';
import { startBrowser, type TestBrowser, type View, type WatchedPage } from '../../support/programs/browser.js';
import { skipWithout } from '../../support/programs/skip.js';
import { CHROMIUM, findProgram } from '../../support/programs/system-program.js';
import { send } from '../../support/request.js';
import { serveWithoutDatabase } from '../site-alone.js';

const contract = JSON.parse(readFileSync(new URL('generated/openapi.json', ROOT), 'utf8')) as Contract;

const GUIDE: Guide = {
  name: 'cooking',
  title: 'Cooking with keys',
  description: 'How to cook.',
  audience: 'developers',
  text: 'Take a **pan**.\n\n## Rate limits in the kitchen\n\nOne `egg` a minute.\n\n```sh\nfry --eggs 2\n```\n',
};

/** What the best result of each query is. */
const BEST: readonly (readonly [address: string, queries: readonly string[]])[] = [
  ['/#key', ['get a key', 'How do I get an API key?', 'sign up', 'signup', 'register']],
  ['/#plans', ['plans', 'pricing', 'plans and limits']],
  ['/#first-call', ['samples', 'quickstart']],
  ['/llms.txt', ['llms.txt']],
  ['/docs#following-the-changes', ['pagination', 'webhooks', 'following the changes']],
  ['/docs#rate-limits', ['rate limit', 'RateLimits', 'limits', 'quota']],
  ['/docs#error-rate_limit_exceeded', ['rate limt', 'limit exceeded', 'too many requests', 'rate_limit_ex']],
  ['/docs#error-since_out_of_window', ['out of windwo']],
  ['/docs#schema-ChangesMeta-next_since', ['next_since', 'nextSince', 'NEXT-SINCE', ' next  since ', 'nextsince']],
  ['/docs#schema-Problem-detail', ['problem detail']],
  ['/docs/guides/cooking', ['cooking with keys']],
  ['/docs/guides/cooking#rate-limits-in-the-kitchen', ['what is in the kitchen', 'egg minute', 'fry --eggs', 'kichen']],
];

const PHONE: View = { width: 390, height: 844 };

const SCRIPTLESS_PHONE: View = { ...PHONE, javaScript: false };

const ATTACK = '"><img src=x onerror=alert(1)>';

describe('the search', () => {
  let search: Search;

  before(async () => {
    search = await createSearch(await listEntries(contract, [GUIDE]));
  });

  const best = (query: string): Entry => search(query)[0]?.found[0]?.entry ?? assert.fail(`nothing for ${query}`);

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
    // A chapter that is the plural of a name is as good.
    const spelled = (text: string): string =>
      text
        .toLowerCase()
        .replaceAll(/[^a-z0-9]/g, '')
        .replace(/s$/, '');
    for (const name of new Set(names)) {
      const entry = best(name);
      const known = [entry.name, ...(entry.aliases ?? [])].map(spelled);
      assert.ok(known.includes(spelled(name)), `${name} finds ${entry.name}`);
    }
  });

  it('the best result is what somebody means, in any spelling and with typing errors', () => {
    for (const [address, queries] of BEST)
      for (const query of queries) assert.equal(best(query).address, address, query);
  });

  it('a word matches the words that it begins, and no words that only contain it', async () => {
    const entry = { group: 'Guides', context: 'Guide', text: '' } as const;
    const named = await createSearch(
      ['Rates', 'Generate', 'Crate', 'Date'].map((name) => ({ ...entry, name, address: `/${name}` })),
    );
    for (const query of ['rate', 'rates', 'rat'])
      assert.deepEqual(
        named(query).flatMap(({ found }) => found.map(({ entry: { name } }) => name)),
        ['Rates'],
      );
  });

  it('a snippet shows the text around the match and marks it', () => {
    assert.deepEqual(search('egg a minute')[0]?.found[0]?.snippet, [
      { text: 'One ', isMatch: false },
      { text: 'egg', isMatch: true },
      { text: ' a ', isMatch: false },
      { text: 'minute', isMatch: true },
      { text: '. fry --', isMatch: false },
      { text: 'eggs', isMatch: true },
      { text: ' 2', isMatch: false },
    ]);
  });

  it('a query without letters or digits, or with a word that is nowhere, finds nothing', () => {
    for (const query of ['', '  ', '.*', 'of', 'since zzzz', '((((']) assert.deepEqual(search(query), [], query);
  });

  it('only the beginning of a long query counts', () => {
    assert.deepEqual(search(`since${' '.repeat(MAX_QUERY)}zzzz`), search('since'));
  });
});

describe('the search page', () => {
  let url: string;
  let stop: () => void;

  before(async () => {
    const { url: served, server } = await serveWithoutDatabase();
    url = served;
    stop = () => server.close();
  });

  after(() => stop());

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

  it('a query is shown as text, and a long or malformed one is answered too', async () => {
    for (const query of [ATTACK, 'a'.repeat(5_000), '%ff%00', ATTACK.repeat(3), '']) {
      const sent = query === '%ff%00' ? query : encodeURIComponent(query);
      const { status, text } = await send(url, `/docs/search?q=${sent}`);
      assert.equal(status, 200);
      assert.ok(!text.includes('<img'), query);
    }
  });

  describe('in Chromium', () => {
    let browser: TestBrowser;
    /** Pages with and without scripts, on wide and narrow screens. Each is opened once: a new one costs a process. */
    const opened = new Map<View | undefined, WatchedPage>();
    let watched: WatchedPage;

    before(async function () {
      browser = await startBrowser(findProgram(CHROMIUM) ?? skipWithout('Chromium', this), url);
    });

    // Undefined if the tests were skipped.
    after(() => (browser as TestBrowser | undefined)?.close());

    async function visit(path: string, view?: View): Promise<Page> {
      watched = opened.get(view) ?? (await browser.newPage(view));
      opened.set(view, watched);
      await watched.open(path);
      return watched.page;
    }

    it('the key / focuses the field, in the header or beside the text, and is typed like any other there', async () => {
      for (const path of ['/revoke-leaked-key', '/docs/guides', '/docs/search?q=key']) {
        const page = await visit(path);
        await page.getByRole('link', { name: 'Settings', exact: true }).focus();
        await page.keyboard.press('/');
        await page.keyboard.type('has/more');
        assert.equal(await page.getByRole('searchbox').inputValue(), 'has/more', path);
      }
      await watched.page.keyboard.press('Enter');
      await watched.page.waitForURL('**/docs/search?q=has%2Fmore');
      watched.assertNoFault();
    });

    it('on a narrow screen the key / leads to the page of the search, and no longer once it is turned off', async () => {
      const page = await visit('/', PHONE);
      await page.keyboard.press('/');
      await page.waitForURL('**/docs/search?q=');
      await page.getByRole('searchbox').and(page.locator(':focus')).waitFor();
      await page.getByRole('checkbox', { name: 'Press / on any page to search' }).uncheck();
      await page.reload();
      await page.getByRole('link', { name: 'Settings', exact: true }).focus();
      await page.keyboard.press('/');
      assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'Settings');
      await page.getByRole('checkbox', { name: 'Press / on any page to search' }).check();
    });

    it('a result that is folded is unfolded and brought into view', async () => {
      // A malformed address has no target.
      await visit('/docs#%E0%A4%A');
      watched.assertNoFault();
      const page = await visit('/docs/search?q=oldest_since');
      await page.getByRole('link', { name: 'oldest_since field · Problem' }).click();
      const field = page.locator('#schema-Problem-oldest_since');
      await field.getByText('will be accepted for another minute').waitFor();
      assert.ok(((await field.boundingBox())?.y ?? -1) > 0);
    });

    it('without scripts, the form beside a guide leads to a page with results in groups', async () => {
      const page = await visit('/docs/guides/operators/install', SCRIPTLESS_PHONE);
      await page.getByRole('searchbox').fill('has_more');
      await page.getByRole('searchbox').press('Enter');
      await page.waitForURL('**/docs/search?q=has_more');
      await page.getByRole('heading', { name: 'Parameters and fields' }).waitFor();
      assert.equal(await page.getByRole('searchbox').inputValue(), 'has_more');
      assert.deepEqual(await page.locator('.found a').first().locator('mark').allInnerTexts(), ['has', 'more', 'more']);
      await page.getByRole('link', { name: 'has_more' }).first().click();
      await page.waitForURL('**/docs#schema-ChangesMeta-has_more');
      assert.ok(await page.locator('#schema-ChangesMeta-has_more').isVisible());
    });

    it('every page has one search in its header or in its text, with and without scripts', async () => {
      for (const view of [PHONE, SCRIPTLESS_PHONE]) {
        for (const path of ['/', '/sign-in', '/docs/guides', '/docs/guides/changes', '/docs/search']) {
          const page = await visit(path, view);
          assert.equal(await page.getByRole('button', { name: 'Search' }).count(), 1, path);
        }
      }
      const page = await visit('/', SCRIPTLESS_PHONE);
      await page.getByRole('button', { name: 'Search' }).click();
      await page.getByRole('searchbox').waitFor();
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
      assert.ok(await bar.getByRole('searchbox').isVisible());
      await bar.getByText('Contents').click();
      await bar.locator('[aria-current="location"]', { hasText: 'Look up a title' }).waitFor();
      await bar.getByRole('link', { name: 'Schemas' }).click();
      await page.locator('.sidebar-links').waitFor({ state: 'hidden' });
      await page.waitForURL('**/docs#schemas');
      assert.ok((await topOf('schemas')) >= (await bottom()) && (await topOf('schemas')) < 160);
      watched.assertNoFault();
    });
  });
});
