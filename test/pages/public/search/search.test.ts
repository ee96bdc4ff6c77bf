import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ERROR_CODES } from '../../../../src/errors.js';
import { generateApiKey } from '../../../../src/keys/api-key.js';
import type { Guide } from '../../../../src/pages/parts/guides/guide-pages.js';
import { readGuides } from '../../../../src/pages/public/guides/guides.js';
import { operationsOf, resolve, type Contract } from '../../../../src/pages/public/reference/contract.js';
import { createSearch, type Search } from '../../../../src/pages/public/search/search.js';
import { listEntries, type Entry } from '../../../../src/pages/public/search/search-index.js';
import { ROOT } from '../../../support/guides.js';
import { send } from '../../../support/request.js';
import { serveWithoutDatabase } from '../../site-alone.js';

const contract = JSON.parse(readFileSync(new URL('generated/openapi.json', ROOT), 'utf8')) as Contract;

const GUIDE: Guide = {
  name: 'cooking',
  title: 'Cooking with keys',
  description: 'How to cook.',
  text: 'Take a **pan**.\n\n## Rate limits in the kitchen\n\nOne `egg` a minute.\n\n```sh\nfry --eggs 2\n```\n',
};

/** The guide that says what to do about an error. */
const GUIDE_TO_ERRORS = {
  ...GUIDE,
  name: 'calling-the-api',
  title: 'Calls',
  text: '| code | status | what to do |\n|---|---|---|\n| `content_too_large` | 413 | Send it without a body. |',
};

/** What the best result of each query is. */
const BEST: readonly (readonly [address: string, queries: readonly string[]])[] = [
  ['/#key', ['get a key', 'How do I get an API key?', 'sign up', 'signup', 'register']],
  ['/#plans', ['plans', 'pricing', 'plans and limits']],
  ['/#first-call', ['samples', 'quickstart']],
  ['/docs#following-the-changes', ['pagination', 'webhooks', 'following the changes']],
  ['/docs#rate-limits', ['rate limit', 'RateLimits', 'limits', 'quota']],
  ['/docs#error-rate_limit_exceeded', ['rate limt', 'limit exceeded', 'too many requests', 'rate_limit_ex']],
  ['/docs#error-since_out_of_window', ['out of windwo']],
  ['/docs#error-content_too_large', ['send without a body']],
  ['/docs#schema-ChangesMeta-next_since', ['next_since', 'nextSince', 'NEXT-SINCE', ' next  since ', 'nextsince']],
  ['/docs#schema-Problem-detail', ['problem detail']],
  ['/docs/guides/cooking', ['cooking with keys']],
  ['/docs/guides/cooking#rate-limits-in-the-kitchen', ['what is in the kitchen', 'egg minute', 'fry --eggs', 'kichen']],
];

const ATTACK = '"><img src=x onerror=alert(1)>';

describe('the search', () => {
  let search: Search;

  before(async () => {
    search = await createSearch(await listEntries(contract, [GUIDE, GUIDE_TO_ERRORS]));
  });

  const best = (query: string): Entry =>
    search(query).groups[0]?.found[0]?.entry ?? assert.fail(`nothing for ${query}`);

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
        named(query).groups.flatMap(({ found }) => found.map(({ entry: { name } }) => name)),
        ['Rates'],
      );
  });

  it('a snippet shows the text around the match and marks it', () => {
    assert.deepEqual(search('egg a minute').groups[0]?.found[0]?.snippet, [
      { text: 'One ', isMatch: false },
      { text: 'egg', isMatch: true },
      { text: ' a ', isMatch: false },
      { text: 'minute', isMatch: true },
      { text: '. fry --', isMatch: false },
      { text: 'eggs', isMatch: true },
      { text: ' 2', isMatch: false },
    ]);
  });

  it('a name of several words is marked whole where all its words match, and otherwise each word that does', () => {
    const nameOf = (query: string) =>
      search(query)
        .groups.flatMap(({ found }) => found)
        .find(({ entry }) => entry.name === 'If-None-Match')?.name;
    assert.deepEqual(nameOf('if-none-match'), [{ text: 'If-None-Match', isMatch: true }]);
    assert.deepEqual(nameOf('none'), [
      { text: 'If-', isMatch: false },
      { text: 'None', isMatch: true },
      { text: '-Match', isMatch: false },
    ]);
  });

  it('what several operations or schemas describe in the same words is one result that leads to each of them', () => {
    const places = operationsOf(contract)
      .filter(({ parameters = [] }) =>
        parameters.some((parameter) => resolve(contract, parameter).part.name === 'If-None-Match'),
      )
      .map(({ operationId, summary }) => ({ label: summary, address: `/docs#${operationId}-If-None-Match` }));
    assert.ok(places.length > 1);
    assert.deepEqual(best('If-None-Match').places, places);
  });

  it('a query without letters or digits, or only with words that are nowhere, finds nothing', () => {
    for (const query of ['', '  ', '.*', 'of', '(((('])
      assert.deepEqual(search(query), { groups: [], missing: [] }, query);
    for (const query of ['zzzz', '504', 'zzzz 504']) {
      assert.deepEqual(search(query), { groups: [], missing: query.split(' ') }, query);
    }
  });

  it('where no entry has all words, unknown words are named, and the others are found', () => {
    assert.deepEqual(search('since_out_of_window zzzz').missing, ['zzzz']);
    assert.equal(best('since_out_of_window zzzz').address, '/docs#error-since_out_of_window');
    const { groups, missing } = search('egg next_since');
    assert.deepEqual(missing, []);
    const addresses = groups.flatMap(({ found }) => found.map(({ entry }) => entry.address));
    for (const each of ['/docs/guides/cooking#rate-limits-in-the-kitchen', '/docs#schema-ChangesMeta-next_since']) {
      assert.ok(addresses.includes(each), each);
    }
  });
});

/** What developers have typed, and where the answer stands; undefined for what the service does not have. */
const QUESTIONS: readonly (readonly [query: string, address: string | undefined])[] = [
  ['CORS from browser', '/docs#keys'],
  ['rotate key without downtime', '/docs/guides/developer-settings#rolling-a-key'],
  ['two factor authentication', '/docs/guides/developer-settings#passkeys'],
  ['2FA', '/docs/guides/developer-settings#passkeys'],
  ['MFA', '/docs/guides/developer-settings#passkeys'],
  ['search titles by name', '/docs#getTitle'],
  ['request id not found', '/docs/guides/developer-settings#request-errors'],
  ['delete a key', '/docs/guides/developer-settings#revoking-a-key'],
  ['swagger', '/docs/guides/generate-an-sdk'],
  ['SDK', '/docs/guides/generate-an-sdk'],
  ['504', undefined],
  ['license', '/docs'],
  ['licence', '/docs'],
  ['how often may I poll', '/docs/guides/following-the-feed#the-loop'],
  ['backoff', '/docs/guides/calling-the-api#stay-within-your-limits'],
  ['quota exceeded', '/docs#error-rate_limit_exceeded'],
  ['uptime', '/status'],
  ['webhook for changes', '/docs#following-the-changes'],
  ['pricing', '/#plans'],
];

describe('the search of the reference and all guides', () => {
  it('the page that answers a question is the first or second result', async () => {
    const guides = await readGuides(fileURLToPath(ROOT));
    const search = await createSearch(await listEntries(contract, guides));
    for (const [query, address] of QUESTIONS) {
      const { groups } = search(query);
      const [first, second] = groups;
      const hits = [first?.found[0], first?.found[1] ?? second?.found[0], second?.found[0]];
      if (address === undefined) assert.deepEqual(groups, [], query);
      else
        assert.ok(
          hits.some((hit) => hit?.entry.address === address),
          `${query}: ${hits.map((hit) => hit?.entry.address).join(', ')}`,
        );
    }
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

  it('results stand in groups and mark what matches, and the form keeps the query', async () => {
    const { text } = await send(url, '/docs/search?q=has_more');
    assert.match(text, /<h2[^>]*>Parameters and fields</);
    assert.match(text, /<input[^>]* type="search"[^>]* value="has_more"/);
    const [, result = ''] = /<a [^>]*href="\/docs#schema-ChangesMeta-has_more">(.*?)<\/a>/s.exec(text) ?? [];
    assert.ok(result.includes('<mark>has_more</mark>'), result);
    const { text: shared } = await send(url, '/docs/search?q=x-request-id');
    for (const { operationId } of operationsOf(contract)) {
      assert.ok(shared.includes(`<a href="/docs#${operationId}-X-Request-Id">`), operationId);
    }
    for (const [query, line] of [
      ['504', 'No results for “504”. The API never responds with status 504.'],
      ['limits zzzz', 'for “limits zzzz”. Nothing contains “zzzz”.'],
    ] as const) {
      assert.ok((await send(url, `/docs/search?q=${encodeURIComponent(query)}`)).text.includes(line), query);
    }
  });
});
