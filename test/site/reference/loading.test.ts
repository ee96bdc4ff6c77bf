import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { h, type VNode } from 'preact';
import type { Page } from 'playwright-core';
import { renderParts } from '../../../src/site/layout/page.js';
import type { TestBrowser } from '../../support/programs/browser.js';
import { send, type Reply } from '../../support/request.js';
import type { TestService } from '../../support/service.js';
import { PAGES } from '../pages.js';
import { serveWithoutDatabase } from '../site-alone.js';
import { testBrowser } from '../../support/http/test-browser.js';

/** The most bytes that a browser gets for a page, with its stylesheet and script. */
const MOST_BYTES = 40_000;

/** As Chromium sends it. */
const ACCEPT_ENCODING = 'gzip, deflate, br, zstd';

const WIDTHS = [1280, 390];

/** Parts of the reference. The last one is folded. */
const PARTS = ['error-not_found', 'getTitle', 'schema-Problem-detail'];

/** How far below the top of the window the target of a link may stand, in CSS pixels: the header and some air. */
const NEAR_TOP = 160;

/** How long other work takes in each turn of a busy process, in milliseconds. */
const BUSY_MS = 150;

describe('the first request for a page', () => {
  it('the reference is served on a machine so busy that its first rendering outlasts the deadline of a request', async () => {
    const { url, server } = await serveWithoutDatabase();
    let isBusy = true;
    const nobodyNotifies = new Int32Array(new SharedArrayBuffer(4));
    const work = (): void => {
      // Blocks the process as a computation would, and leaves the processor to other tests.
      Atomics.wait(nobodyNotifies, 0, 0, BUSY_MS);
      if (isBusy) setImmediate(work);
    };
    server.once('request', work);
    const { status, text } = await send(url, '/docs', { headers: { 'accept-encoding': ACCEPT_ENCODING } });
    isBusy = false;
    server.close();
    assert.equal(status, 200, text);
  });

  it('between the parts of a long page, other work gets its turn', async () => {
    const order: string[] = [];
    const part = (name: string): VNode => h(() => (order.push(name), name), {});
    const html = renderParts([part('a'), part('b'), part('c')]);
    const others = (async () => {
      for (let turn = 0; turn < 3; turn += 1) {
        await nextTurn();
        order.push('other');
      }
    })();
    assert.equal(await html, 'abc');
    await others;
    assert.deepEqual(order, ['a', 'other', 'b', 'other', 'c', 'other']);
  });
});

describe('a page that loads', () => {
  let service: TestService;
  let browser: TestBrowser;

  const started = testBrowser();
  before(() => ({ service, browser } = started()));

  it(`every public page with its stylesheet and script takes at most ${MOST_BYTES} bytes on the way to a browser`, async () => {
    const get = (path: string): Promise<Reply> =>
      send(service.url, path, { headers: { 'accept-encoding': ACCEPT_ENCODING } });
    for (const path of PAGES) {
      const page = await get(path);
      if (!String(page.headers['content-type']).startsWith('text/html')) continue;
      const { text } = await send(service.url, path);
      const files = [...text.matchAll(/(?:href|src)="(\/assets\/[^"]+\.(?:css|js))"/g)].map(([, file = '']) => file);
      const replies = [page, ...(await Promise.all(files.map(get)))];
      const bytes = replies.reduce((sum, reply) => sum + reply.bytes.length, 0);
      assert.ok(replies.length === 3 && bytes <= MOST_BYTES, `${path}: ${bytes} in ${replies.length} files`);
    }
  });

  for (const width of WIDTHS) {
    it(`nothing moves on a public page ${width} pixels wide while it loads, with or without a part in its address`, async () => {
      const { page, close } = await browser.newPage({ width, height: 800 });
      await delayScripts(page);
      await page.addInitScript(() => localStorage.setItem('language', 'Python'));
      const moved: string[] = [];
      const open = async (path: string, hash = ''): Promise<void> => {
        await openPage(page, path, hash);
        moved.push(...(await page.evaluate(readShifts)).map((shift) => `${path}${hash} ${shift}`));
      };
      for (const path of await pagesWithParts(service.url)) {
        await open(path);
        const { middle, folded } = await someHashes(page);
        // Scrolling to a part that is not folded is the browser's own work, on every width.
        for (const hash of width === WIDTHS[0] ? [...folded, ...middle] : folded) await open(path, hash);
      }
      await close();
      assert.deepEqual(moved, []);
    });

    it(`a link to a part of the reference ${width} pixels wide is there when the page has loaded, without sliding`, async () => {
      const { page, close } = await browser.newPage({ width, height: 800 });
      await page.emulateMedia({ reducedMotion: 'no-preference' });
      await page.addInitScript(() => {
        addEventListener('load', () => {
          const target = document.getElementById(location.hash.slice(1));
          document.documentElement.dataset.top = String(target?.getBoundingClientRect().top);
        });
      });
      for (const id of width === WIDTHS[0] ? PARTS : PARTS.slice(-1)) {
        await openPage(page, '/docs', `#${id}`);
        const top = Number(await page.locator('html').getAttribute('data-top'));
        assert.ok(top >= 0 && top <= NEAR_TOP, `${id} is ${top} pixels below the top`);
        assert.ok(await page.locator(`#${id}`).isVisible(), `${id} is folded`);
      }
      await close();
    });
  }
});

/** @returns the pages that have something that may move others, such as a picture or what scripts change, and no page before */
async function pagesWithParts(url: string): Promise<string[]> {
  const seen = new Set<string>();
  const pages: string[] = [];
  for (const path of PAGES) {
    const { text } = await send(url, path);
    const parts = [...text.matchAll(/<(?:img|svg|details|table|pre|form)\b|\sdata-[a-z-]+|\sclass="[^"]*"/g)].map(
      String,
    );
    if (parts.some((part) => !seen.has(part))) pages.push(path);
    for (const part of parts) seen.add(part);
  }
  return pages;
}

/** How many pages have been opened. */
let opened = 0;

/** Opens an address anew, even where only the part after `#` differs from the last one: no page reads this query. */
async function openPage(page: Page, path: string, hash: string): Promise<void> {
  opened += 1;
  await page.goto(`${path}?opened=${opened}${hash}`);
  // What the last task has changed is drawn in the next frame, and reported in the one after it.
  await page.evaluate(
    () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve)))),
  );
}

/** How long a browser gets for the first paint of a page without its scripts, in milliseconds. */
const PAINT_MS = 100;

/** Makes the scripts of a page arrive late, as on a slow network: what the browser may paint before, it has painted. */
async function delayScripts(page: Page): Promise<void> {
  await page.route('**/*.js', async (route) => {
    const isReady = (): boolean => document.readyState === 'interactive' && document.styleSheets.length > 0;
    await page.waitForFunction(isReady, undefined, { polling: 10 });
    await page.evaluate((ms) => new Promise((resolve) => setTimeout(resolve, ms)), PAINT_MS);
    await route.continue();
  });
}

/** Finds the part of the page in the middle of those that the page links to, and the first one that is folded, if any. */
function someHashes(page: Page): Promise<Readonly<Record<'middle' | 'folded', readonly string[]>>> {
  return page.evaluate(() => {
    const links = Array.from(document.querySelectorAll<HTMLAnchorElement>('main a[href^="#"]'), ({ hash }) => hash);
    const folded = links.filter(
      (hash) => document.querySelector(`details:not([open]) > #${CSS.escape(hash.slice(1))}`) !== null,
    );
    const middle = Math.floor(links.length / 2);
    return { middle: links.slice(middle, middle + 1), folded: folded.slice(0, 1) };
  });
}

/** In the page: what has moved by itself, and how far. */
function readShifts(): Promise<string[]> {
  interface Shift extends PerformanceEntry {
    readonly value: number;
    readonly sources: readonly { readonly node: Node | null }[];
  }
  return new Promise((resolve) => {
    new PerformanceObserver((list, observer) => {
      observer.disconnect();
      const shifts = list.getEntries() as Shift[];
      resolve(
        shifts.map(({ value, sources }) => {
          const parts = sources.map(({ node }) => (node instanceof Element ? node.outerHTML.slice(0, 80) : '?'));
          return `${value}: ${parts.join(', ')}`;
        }),
      );
    }).observe({ type: 'layout-shift', buffered: true });
    // The observer is not called where nothing has moved.
    setTimeout(() => resolve([]), 50);
  });
}
