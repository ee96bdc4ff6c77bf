import assert from 'node:assert/strict';
import { GUIDES as OPERATOR_GUIDES } from '../../src/pages/operator/guides/guides.js';
import { GUIDES } from '../../src/pages/public/guides/guides.js';
import { renderMarkdown } from '../../src/pages/parts/content/markdown.js';
import { readTitle } from '../support/guides.js';
import { signInOperator } from '../support/http/operator.js';
import { signIn, Visitor } from '../support/http/visitor.js';
import { assertHeaders } from '../support/problem.js';
import { startService, type TestService } from '../support/service.js';
import { createSampleDeveloper } from './sample-developer.js';
import { FILES, operatorPages, PAGES, settingsPages, UNKNOWN } from './pages.js';

const BROWSER = { accept: 'text/html' };

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  md: 'text/markdown; charset=utf-8',
  txt: 'text/plain; charset=utf-8',
  ico: 'image/x-icon',
};

/** Results that lead out of the documentation. */
const SEARCHES = ['sign+up', 'price', 'quickstart'].map((query) => `/docs/search?q=${query}`);

/** @returns the addresses that a page links to or shows */
function linksOf(html: string): string[] {
  return [...html.matchAll(/<(?:a|img|link|script)\b[^>]* (?:href|src)="([^"]+)"/g)].map(([, link = '']) => link);
}

/** How to find the links of a file, and a part of it that a link leads to, by the beginning of its media type. */
const LINKED: Readonly<
  Record<string, { links: (text: string) => string[]; hasPart: (text: string, id: string) => boolean }>
> = {
  'text/html': { links: linksOf, hasPart: (html, id) => html.includes(` id="${id}"`) },
  'text/markdown': {
    links: (text) => Array.from(text.matchAll(/\]\(([^)\s]+)\)/g), ([, link = '']) => link),
    hasPart: (text, id) => renderMarkdown(text).headings.some((heading) => heading.id === id),
  },
};

describe('the files and the links of the pages', () => {
  let service: TestService;
  /** A developer who is signed in, with keys in every state and failed requests. */
  let visitor: Visitor;
  let operator: Visitor;
  let operatorPaths: readonly string[];
  /** Of the public address and of that of the operator pages, the paths to start at. */
  let entrances: Map<Visitor, readonly string[]>;

  before(async () => {
    service = await startService({ settings: { METRICS_ADDRESS: '127.0.0.1:0' } });
    const { developerId, prefix } = await createSampleDeveloper(service.db);
    visitor = await signIn(service, developerId);
    operator = await signInOperator(service);
    operatorPaths = operatorPages({ id: String(developerId), prefix });
    entrances = new Map([
      [visitor, [...PAGES, ...FILES, ...SEARCHES, ...settingsPages(prefix)]],
      [operator, operatorPaths],
    ]);
  });

  after(() => service.stop());

  it('every link leads to an existing page and to an existing part of it', async () => {
    const pages = new Map<string, { text: string; type: string }>();
    const faults: string[] = [];
    const waiting = [...entrances].flatMap(([reader, paths]) =>
      // Nobody was given the sign-in link of that token, and the developer has not signed out.
      paths
        .filter((path) => !path.includes(UNKNOWN.token) && path !== '/signed-out')
        .map((path) => ({ reader, path, from: 'the list of pages' })),
    );
    const anchors: { address: string; anchor: string; from: string }[] = [];
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const { reader, path, from } = next;
      const address = reader.url + path;
      if (pages.has(address)) continue;
      const reply = await reader.get(path, BROWSER);
      // The overview for language models is Markdown, under the name that their format gives it.
      const type =
        path === '/llms.txt' ? 'text/markdown' : (/^[\w/]+/.exec(reply.headers['content-type'] ?? '')?.[0] ?? '');
      pages.set(address, { text: reply.text, type });
      if (reply.status !== 200) faults.push(`${from} leads to ${address}: ${reply.status}`);
      for (const link of LINKED[type]?.links(reply.text) ?? []) {
        const { origin, pathname, hash } = new URL(link, address);
        const next = [...entrances.keys()].find(({ url }) => url === origin);
        if (next === undefined) continue;
        // Developers cannot open the internal address, and need not know it.
        if (reader === visitor && next === operator) faults.push(`${address} leads to ${link}`);
        waiting.push({ reader: next, path: pathname, from: address });
        const anchor = decodeURIComponent(hash.slice(1));
        if (anchor !== '') anchors.push({ address: origin + pathname, anchor, from: address });
      }
    }
    for (const { address, anchor, from } of anchors) {
      const { text = '', type = '' } = pages.get(address) ?? {};
      if (LINKED[type]?.hasPart(text, anchor) !== true)
        faults.push(`${from} leads to ${address}#${anchor}: no such part`);
    }
    assert.deepEqual(faults, []);
    assert.ok(pages.size > 40 && anchors.length > 300, `${pages.size} pages, ${anchors.length} anchors`);
  });

  it('without the public pages, no page for operators links to one', async () => {
    const settings = { METRICS_ADDRESS: '127.0.0.1:0', SITE: 'off' };
    const alone = await startService({ settings, databaseUrl: service.databaseUrl });
    try {
      const reader = await signInOperator(alone);
      for (const path of operatorPaths) {
        const links = linksOf((await reader.get(path, BROWSER)).text);
        const isDead = (link: string): boolean => link.startsWith(alone.publicUrl) || !/^(?:[/#]|https?:)/.test(link);
        assert.deepEqual(links.filter(isDead), [], path);
      }
    } finally {
      await alone.stop();
    }
  });

  it('every file has the media type of its name and an entity tag', async () => {
    assert.deepEqual(FILES.filter((path) => !path.endsWith('.md')).sort(), [
      '/favicon.ico',
      '/llms.txt',
      '/robots.txt',
    ]);
    for (const path of FILES) {
      const reply = await visitor.get(path);
      assert.equal(reply.status, 200, path);
      assertHeaders(reply, {
        'content-type': MEDIA_TYPES[/\w+$/.exec(path)?.[0] ?? ''],
        'cache-control': path === '/favicon.ico' ? 'public, max-age=86400' : 'no-cache',
        'x-content-type-options': 'nosniff',
      });
      assert.equal((await visitor.get(path, { 'if-none-match': reply.headers.etag ?? '' })).status, 304, path);
    }
  });

  it('each guide for developers is listed, on its page, as Markdown and in /llms.txt, under the public URL', async () => {
    const [list, llms] = await Promise.all(['/docs/guides', '/llms.txt'].map((path) => visitor.get(path)));
    for (const [name, description] of Object.entries(GUIDES)) {
      const [title, path] = [await readTitle(name), `/docs/guides/${name}`];
      assert.ok(list?.text.includes(`<a href="${path}">${title}</a>`), name);
      assert.ok(llms?.text.includes(`- [${title}](${service.publicUrl}${path}.md): ${description}\n`), name);
      const { text } = await visitor.get(`${path}.md`);
      assert.ok(text.startsWith(`# ${title}\n\n`) && !text.includes('127.0.0.1:8080'), name);
      const page = (await visitor.get(path, BROWSER)).text;
      assert.ok(page.includes(`<link rel="alternate" type="text/markdown" href="${path}.md"/>`), name);
    }
    const { text } = await visitor.get('/docs/guides/generate-an-sdk.md');
    assert.ok(text.includes(`npx openapi-typescript ${service.publicUrl}/openapi.yaml -o catalog.d.ts\n`));
  });

  it('/robots.txt keeps crawlers out of the settings and sign-in, and /favicon.ico is an icon of 32 by 32 pixels', async () => {
    const { text } = await visitor.get('/robots.txt');
    assert.equal(text, 'User-agent: *\nDisallow: /settings\nDisallow: /sign-in\nDisallow: /sign-up\nAllow: /\n');
    const { bytes } = await visitor.get('/favicon.ico');
    assert.deepEqual([...bytes.subarray(0, 8)], [0, 0, 1, 0, 1, 0, 32, 32]);
    assert.equal(bytes.readUInt32LE(14), bytes.length - 22);
  });

  it('the guides for operators open without a session on the operator pages, and are not on the public ones', async () => {
    const somebody = new Visitor(operator.url);
    const [{ text }, list] = [await visitor.get('/llms.txt'), await somebody.get('/guides')];
    for (const name of Object.keys(OPERATOR_GUIDES)) {
      assert.ok(list.text.includes(`<a href="/guides/${name}">${await readTitle(name)}</a>`), name);
      assert.equal((await somebody.get(`/guides/${name}`)).status, 200, name);
      for (const path of [`/docs/guides/operators/${name}`, `/docs/guides/${name}`, `/guides/${name}`]) {
        assert.equal((await visitor.get(path, BROWSER)).status, 404, path);
      }
      assert.ok(!text.includes(`/${name}.md`), name);
    }
  });
});

describe('Markdown', () => {
  it('tags, handlers and addresses with a script in Markdown are rendered as text', () => {
    for (const text of [
      '<script>alert(1)</script>',
      '<img src=x onerror=alert(1)>',
      'a <b onclick="x">b</b>',
      '[a](javascript:alert(1))',
      '![a](javascript:alert(1))',
      '`<script>`',
      '```"><script>\n<script>\n```',
      '| <script> |\n|---|\n| <script> |',
    ]) {
      const { html } = renderMarkdown(text);
      assert.doesNotMatch(html, /<script|<img|<b |onerror=alert\(1\)>$|href="javascript|src="javascript/, text);
    }
  });

  it('headings get the anchors that GitHub gives them', () => {
    const { headings } = renderMarkdown("# What's new?\n\n## The `catalog` command");
    assert.deepEqual(headings, [
      { level: 1, text: "What's new?", id: 'whats-new' },
      { level: 2, text: 'The catalog command', id: 'the-catalog-command' },
    ]);
  });

  it('a link without an address on the pages becomes plain text', () => {
    const { html } = renderMarkdown('[the README](../README.md) and [that](x.md)', {
      resolve: (address) => (address === 'x.md' ? '/x' : undefined),
    });
    assert.equal(html, '<p><a>the README</a> and <a href="/x">that</a></p>\n');
  });
});
