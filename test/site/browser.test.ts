import assert from 'node:assert/strict';
import {
  assertAccessible,
  startBrowser,
  type TestBrowser,
  type View,
  type WatchedPage,
} from '../support/programs/browser.js';
import { startService, type TestService } from '../support/service.js';
import { skipWithout } from '../support/programs/skip.js';
import { CHROMIUM, findProgram } from '../support/programs/system-program.js';
import { PAGES } from './pages.js';

/** Every page, and what stands in place of one that does not exist. */
const PATHS = [...PAGES, '/no-such-page'];

/** The width that WCAG 2.2 asks for, in CSS pixels (success criterion 1.4.10). */
const NARROWEST = 320;

describe('the pages in Chromium', () => {
  let service: TestService;
  let browser: TestBrowser;
  let watched: WatchedPage;

  before(async function () {
    const program = findProgram(CHROMIUM) ?? skipWithout('Chromium', this);
    service = await startService();
    browser = await startBrowser(program, service.url);
  });

  after(async () => {
    // Undefined where the tests were skipped.
    await (browser as TestBrowser | undefined)?.close();
    await (service as TestService | undefined)?.stop();
  });

  afterEach(async () => {
    await watched.close();
  });

  async function open(path: string, view: View = {}): Promise<WatchedPage> {
    watched = await browser.newPage(view);
    const status = await watched.open(path);
    assert.equal(status, path === '/no-such-page' ? 404 : 200);
    return watched;
  }

  for (const path of PATHS) {
    for (const colorScheme of ['light', 'dark'] as const) {
      it(`axe finds no fault in ${path} on a ${colorScheme} screen`, async () => {
        const { page } = await open(path, { colorScheme });
        await assertAccessible(page);
      });
    }

    it(`${path} does not scroll sideways at ${NARROWEST} pixels`, async () => {
      const { page } = await open(path, { width: NARROWEST, height: 640 });
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.equal(width, NARROWEST);
      await assertAccessible(page);
    });

    it(`the keyboard reaches every link and control of ${path}, and the focus is visible`, async () => {
      const { page } = await open(path);
      const wanted = await page.evaluate(() => {
        const groups = new Set<string>();
        return (
          Array.from(document.querySelectorAll<HTMLElement>('a[href], button, input, select, textarea, [tabindex="0"]'))
            .filter((element) => element.checkVisibility({ visibilityProperty: true }))
            // The tab key stops once in a group of radio buttons.
            .filter((element) => {
              if (!(element instanceof HTMLInputElement) || element.type !== 'radio') return true;
              return !groups.has(element.name) && groups.add(element.name);
            }).length
        );
      });
      const faint: string[] = [];
      for (let reached = 0; reached < wanted; reached += 1) {
        await page.keyboard.press('Tab');
        const focused = await page.evaluate(() => {
          const element = document.activeElement;
          if (!(element instanceof HTMLElement) || element === document.body) return undefined;
          // The label of a hidden radio button shows its focus.
          const label =
            element instanceof HTMLInputElement && element.type === 'radio' ? element.labels?.[0] : undefined;
          const { outlineStyle, outlineWidth } = getComputedStyle(label ?? element);
          const isVisible = outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2;
          return { html: element.outerHTML.slice(0, 120), isVisible };
        });
        assert.ok(focused, `the focus left the page after ${reached} of ${wanted} stops`);
        if (!focused.isVisible) faint.push(focused.html);
      }
      assert.deepEqual(faint, []);
    });
  }

  it('no page reports an error, breaks its policy or asks another origin, with and without scripts', async () => {
    for (const javaScript of [true, false]) {
      for (const path of PATHS.filter((each) => each !== '/no-such-page')) {
        const { page, assertNoFault } = await open(path, { javaScript });
        await page.waitForLoadState('networkidle');
        assertNoFault();
        await watched.close();
      }
    }
  });

  it('a page shows each language of the first call, also without scripts', async () => {
    for (const javaScript of [true, false]) {
      const { page } = await open('/', { javaScript });
      for (const [label, text] of [
        ['curl', 'curl -H'],
        ['JavaScript', 'await fetch('],
        ['Python', 'urllib.request'],
      ] as const) {
        await page.getByText(label, { exact: true }).first().click();
        assert.ok((await page.locator('.tab-panel:visible').innerText()).includes(text), label);
        assert.equal(await page.locator('.tab-panel:visible').count(), 1);
      }
      await watched.close();
    }
  });

  it('a button copies the code beside it', async () => {
    const { page } = await open('/');
    await page.locator('.tab-panel:visible .copy-button').click();
    await page.getByText('Copied').waitFor();
    assert.equal(
      await page.evaluate(() => navigator.clipboard.readText()),
      `curl -H "Authorization: Bearer $KEY" ${service.url}/api/v1/stats`,
    );
  });

  it('shows no button for what needs a script where there is none', async () => {
    const { page } = await open('/', { javaScript: false });
    assert.equal(await page.locator('button:visible').count(), 0);
  });
});
