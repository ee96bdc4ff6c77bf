import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import {
  assertAccessible,
  DARK_RULES,
  leaveKept,
  NARROW_RULES,
  resize,
  startBrowser,
  type TestBrowser,
  type WatchedPage,
} from '../support/programs/browser.js';
import { startService, type TestService } from '../support/service.js';
import { skipWithout } from '../support/programs/skip.js';
import { CHROMIUM, findProgram } from '../support/programs/system-program.js';
import { PAGES } from './pages.js';

/** In place of a page that does not exist stands one that says so. */
const NO_PAGE = '/no-such-page';

/** The width that WCAG 2.2 asks for, in CSS pixels (success criterion 1.4.10). */
const NARROWEST = 320;

/** The elements that the tab key must reach. */
const FOCUSABLE = 'a[href], button, input, select, textarea, summary, [tabindex="0"]';

describe('the pages in Chromium', () => {
  let service: TestService;
  let browser: TestBrowser;
  let plain: WatchedPage;
  let scriptless: WatchedPage;

  before(async function () {
    const program = findProgram(CHROMIUM) ?? skipWithout('Chromium', this);
    service = await startService();
    browser = await startBrowser(program, service.url);
    plain = await browser.newPage();
    scriptless = await browser.newPage({ javaScript: false });
  });

  after(async () => {
    // Undefined where the tests were skipped.
    await (browser as TestBrowser | undefined)?.close();
    await (service as TestService | undefined)?.stop();
  });

  async function open(path: string, { page, open, assertNoFault }: WatchedPage = plain): Promise<Page> {
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.emulateMedia({ colorScheme: 'light' });
    assert.equal(await open(path), path === NO_PAGE ? 404 : 200);
    if (path !== NO_PAGE) assertNoFault();
    return page;
  }

  for (const path of [...PAGES, NO_PAGE]) {
    it(`${path} is accessible on light, dark and narrow screens, and does not scroll sideways`, async () => {
      const page = await open(path);
      // Nobody sees what is folded away, and axe skips it.
      await page.evaluate(() => {
        document.querySelectorAll('details').forEach((details) => (details.open = true));
      });
      await assertAccessible(page);
      await page.emulateMedia({ colorScheme: 'dark' });
      await assertAccessible(page, DARK_RULES);
      await resize(page, { width: NARROWEST, height: 640 });
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), NARROWEST);
      await assertAccessible(page, NARROW_RULES);
    });

    it(`the keyboard reaches every link and control of ${path}, and the focus is visible`, async () => {
      const page = await open(path);
      const wanted = await page.evaluate(countStops, FOCUSABLE);
      const faint: string[] = [];
      for (let reached = 0; reached < wanted; reached += 1) {
        await page.keyboard.press('Tab');
        const focused = await page.evaluate(describeFocus);
        assert.ok(focused, `the focus left the page after ${reached} of ${wanted} stops`);
        if (!focused.isVisible) faint.push(focused.html);
      }
      assert.deepEqual(faint, []);
    });
  }

  it('no page reports an error, breaks its policy or asks another origin, with and without scripts', async () => {
    for (const watched of [plain, scriptless]) {
      for (const path of PAGES) {
        // Fails on a fault once all that the page loads is there.
        await open(path, watched);
      }
    }
  });

  it('a page shows each language of the first call, also without scripts', async () => {
    for (const watched of [plain, scriptless]) {
      const page = await open('/', watched);
      for (const [label, text] of [
        ['curl', 'curl -H'],
        ['JavaScript', 'await fetch('],
        ['Python', 'urllib.request'],
      ] as const) {
        await page.getByText(label, { exact: true }).first().click();
        assert.ok((await page.locator('.tab-panel:visible').innerText()).includes(text), label);
        assert.equal(await page.locator('.tab-panel:visible').count(), 1);
      }
    }
  });

  it('a button copies the code beside it', async () => {
    const page = await open('/');
    await page.locator('.tab-panel:visible .copy-button').click();
    await page.getByText('Copied').waitFor();
    assert.equal(
      await page.evaluate(() => navigator.clipboard.readText()),
      `curl -H "Authorization: Bearer $KEY" \\\n  ${service.url}/api/v1/stats`,
    );
  });

  it('a page without scripts shows no button or form that needs one', async () => {
    for (const path of PAGES) {
      const page = await open(path, scriptless);
      assert.equal(
        await page.locator('[data-copy]:visible, [data-try]:visible, [data-find-form]:visible').count(),
        0,
        path,
      );
    }
  });

  describe('of the reference', () => {
    const form = 'form[aria-label="Try getTitle"]';

    it('call an operation with the key that is typed, and keep the key nowhere', async () => {
      await service.db('titles').insert({ svc_id: 'blade-runner-1982', media_type: 'movie', title: 'Blade <b>Runner' });
      const page = await open('/docs');
      const asked: { url: string; authorization: string | undefined }[] = [];
      page.on('request', (request) => {
        if (request.resourceType() === 'fetch')
          asked.push({ url: request.url(), authorization: request.headers().authorization });
      });
      await page.locator(`${form} [data-key]`).fill(service.key);
      await page.locator(`${form} button`).click();
      const answer = page.locator(`${form} [data-answer]`);
      await answer.getByText('200', { exact: true }).waitFor();
      assert.deepEqual(asked, [
        { url: `${service.url}/api/v1/titles/blade-runner-1982`, authorization: `Bearer ${service.key}` },
      ]);
      const shown = await answer.innerText();
      assert.ok(shown.includes('"title": "Blade <b>Runner"'), shown);
      assert.match(shown, /ratelimit\s+"minute";r=\d+/);
      // The other forms have it, so that it is typed once.
      assert.equal(await page.locator('form[aria-label="Try getMe"] [data-key]').inputValue(), service.key);
      const kept = await page.evaluate(() => [
        location.href,
        document.cookie,
        Object.keys(localStorage),
        Object.keys(sessionStorage),
      ]);
      assert.deepEqual(kept, [`${service.url}/docs`, '', [], []]);
      assert.ok(!service.logged.some((line) => line.includes(service.key)));
      await page.goto('about:blank');
      await page.goBack();
      assert.equal(await page.locator(`${form} [data-key]`).inputValue(), '');
      await page.locator(`${form} [data-key]`).fill(service.key);
      await leaveKept(page);
      assert.equal(await page.locator(`${form} [data-key]`).inputValue(), '');
    });

    it('show what the service says to a wrong key, and to a parameter that is wrong', async () => {
      const page = await open('/docs');
      await page.locator(`${form} [data-key]`).fill('svc_wrong');
      await page.locator(`${form} button`).click();
      await page.locator(form).getByText('"invalid_api_key"').waitFor();
      await page.locator(`${form} [data-key]`).fill(service.key);
      await page.locator(`${form} [data-parameter=title_id]`).fill('a/../b');
      await page.locator(`${form} button`).click();
      await page.locator(form).getByText('"invalid_parameter"').waitFor();
    });

    it('find every part by its words, and unfold what is found', async () => {
      const page = await open('/docs');
      const search = page.getByLabel('Search the reference');
      await search.fill('oldest_since accepted');
      await page.locator('#found a[href="#schema-Problem"]').click();
      await page.locator('#schema-Problem').getByText('The oldest').waitFor();
      await search.fill('nothing has these words');
      assert.equal(await page.locator('#found').innerText(), 'No results');
    });
  });
});

/** In the page: how often the tab key must be pressed to reach everything. */
function countStops(focusable: string): number {
  const groups = new Set<string>();
  return Array.from(document.querySelectorAll<HTMLElement>(focusable))
    .filter((element) => element.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true }))
    .filter((element) => element.tabIndex >= 0)
    .filter((element) => {
      // The tab key stops once in a group of radio buttons.
      if (!(element instanceof HTMLInputElement) || element.type !== 'radio') return true;
      return !groups.has(element.name) && groups.add(element.name);
    }).length;
}

/** In the page: what has the focus, and whether one can see that. */
function describeFocus(): { html: string; isVisible: boolean } | undefined {
  const element = document.activeElement;
  if (!(element instanceof HTMLElement) || element === document.body) return undefined;
  // The label of a hidden radio button shows its focus.
  const label = element instanceof HTMLInputElement && element.type === 'radio' ? element.labels?.[0] : undefined;
  const { outlineStyle, outlineWidth } = getComputedStyle(label ?? element);
  return {
    html: element.outerHTML.slice(0, 120),
    isVisible: outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2,
  };
}
