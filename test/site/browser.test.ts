import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { AXE, coloursOf, resize, type TestBrowser, type WatchedPage } from '../support/programs/browser.js';
import { eventually } from '../support/eventually.js';
import type { TestService } from '../support/service.js';
import { createKey } from '../../src/keys/keys.js';
import { TABS } from '../../src/site/settings/settings-page.js';
import { operatorPages, PAGES, settingsPages, UNKNOWN } from './pages.js';
import { createSampleDeveloper } from './sample-developer.js';
import { assertFits, assertPrints, FOCUSABLE, signInQuietly, signInOperatorByLink, type Novelty } from './visits.js';
import { testBrowser } from '../support/http/test-browser.js';

/** In place of a page that does not exist stands an error page. */
const NO_PAGE = '/no-such-page';

/** The page of the search with results. */
const RESULTS = '/docs/search?q=key';

/** Who opens which pages. Only the developer and the operator have pages behind sign-in. */
const VISITS = [
  { visitor: 'nobody', who: 'somebody who is not signed in', paths: [...PAGES, RESULTS, NO_PAGE] },
  { visitor: 'developer', who: 'a developer', paths: [...settingsPages(UNKNOWN.prefix), '/sign-in'] },
  { visitor: 'operator', who: 'an operator', paths: [...operatorPages(), NO_PAGE] },
] as const;

/** What only the script makes useful. */
const NEEDS_SCRIPT = '.scripted, [data-copy], [data-passkey]';

const ATTACK = '"><script>document.title = "attacked"</script><img src="x" onerror="document.title = \'attacked\'">';

describe('in Chromium', () => {
  let service: TestService;
  let browser: TestBrowser;
  let developerId: number;
  /** A key of the developer. */
  let prefix: string;
  /** What needs the script, by its looks, and was invisible without it. */
  const hidden = new Set<string>();

  const started = testBrowser({ settings: { HOST: 'localhost', METRICS_ADDRESS: '127.0.0.1:0' } });
  before(async () => {
    ({ service, browser } = started());
    developerId = await createSampleDeveloper(service.db);
    await service
      .db('developers')
      .where({ id: developerId })
      .update({ project_name: `A rather long name ${ATTACK}` });
    const keys = service.db('api_keys').where({ developer_id: developerId, label: 'staging' });
    [prefix = assert.fail()] = await keys.clone().pluck<string[]>('prefix');
    await keys.update({ label: ATTACK });
  });

  for (const { visitor, who, paths } of VISITS) {
    describe(`a page opened by ${who}`, () => {
      let scripted: WatchedPage;
      /** Opened where a page needs it. */
      let scriptless: WatchedPage | undefined;

      before(async () => {
        scripted = await arrive(true);
        // Before each page: to send it after each would take longer than all else that axe does.
        await scripted.page.addInitScript(AXE);
      });

      after(async () => {
        await scripted.close();
        await scriptless?.close();
      });

      async function arrive(javaScript: boolean): Promise<WatchedPage> {
        const origin = visitor === 'operator' ? service.operatorUrl : service.url;
        const watched = await browser.newPage({ origin, javaScript });
        if (visitor === 'developer') await signInQuietly(watched, service, developerId);
        if (visitor === 'operator') await signInOperatorByLink(watched, service.db);
        return watched;
      }

      async function open(watched: WatchedPage, path: string): Promise<Page> {
        const { page } = watched;
        const address = path.replace(UNKNOWN.prefix, prefix).replace(UNKNOWN.id, String(developerId));
        assert.equal(await watched.open(address), path === NO_PAGE ? 404 : 200);
        if (path !== NO_PAGE) watched.assertNoFault();
        return page;
      }

      for (const path of paths) {
        it(`${path} is accessible on light, dark and narrow screens, by the keyboard and without scripts`, async () => {
          const page = await open(scripted, path);
          assert.equal(await page.evaluate(textIndent), 0, 'the page begins at the left edge of the header');
          const prepare = async ({ kinds, isFocusable }: Novelty): Promise<void> => {
            if (isFocusable) await assertKeyboardReachesAll(page);
            if (kinds.length > 0) await assertPrints(page);
            // axe skips what is folded away.
            await page.evaluate(() => {
              document.querySelectorAll('details').forEach((details) => (details.open = true));
            });
          };
          await assertFits(page, { prepare });
          // A locator would load Playwright's own script into each page.
          const about = await page.evaluate(() => [document.title, document.querySelectorAll('h1').length] as const);
          assert.notEqual(about[0], 'attacked');
          assert.equal(about[1], 1);
          const scriptKinds = await page.evaluate(kindsOf, NEEDS_SCRIPT);
          if (scriptKinds.some((kind) => !hidden.has(kind))) {
            scriptless ??= await arrive(false);
            const withoutScript = (await open(scriptless, path)).locator(NEEDS_SCRIPT);
            assert.equal(await withoutScript.filter({ visible: true }).count(), 0);
            for (const kind of scriptKinds) hidden.add(kind);
          }
        });
      }
    });
  }

  describe('the frame of a page', () => {
    /** One for all tests: another profile costs a process. */
    let watched: WatchedPage;

    before(async () => {
      await service.db('developers').where({ id: developerId }).update({ project_name: 'Film club' });
      watched = await browser.newPage();
      await signInQuietly(watched, service, developerId);
    });

    afterEach(async () => {
      await watched.page.emulateMedia({ media: 'screen', colorScheme: 'light', forcedColors: 'none' });
      await watched.page.setViewportSize({ width: 1280, height: 800 });
    });

    after(() => watched.close());

    it('the entries of a navigation stay where they are, whichever of them is the current one', async () => {
      const { page, open } = watched;
      for (const [navigation, paths] of [
        ['.settings-nav', TABS.slice(0, 3).map(({ path }) => path)],
        ['.site-nav', ['/', '/docs/guides', '/settings', NO_PAGE]],
        ['.ranges', ['24h', '7d'].map((range) => `/settings/usage?range=${range}`)],
      ] as const) {
        const places = new Set<string>();
        const current = new Set<string>();
        for (const path of paths) {
          await open(path);
          const entries = page.locator(`${navigation} a`);
          places.add(
            JSON.stringify(
              await entries.evaluateAll((links) => links.map((link) => link.getBoundingClientRect().left)),
            ),
          );
          current.add((await page.locator(`${navigation} a[aria-current]`).allInnerTexts()).join());
        }
        assert.equal(places.size, 1, `${navigation}: ${[...places].join('; ')}`);
        assert.equal(current.size, paths.length, navigation);
      }
    });

    it('what is current, full or pressed is visible in the colours of a contrast theme', async () => {
      const { page, open } = watched;
      const { key } = await createKey(service.db, { developerId, planId: 'free' });
      for (let call = 0; call < 30; call += 1) await service.get('/api/v1/me', { headers: { 'x-api-key': key } });
      await page.emulateMedia({ forcedColors: 'active' });
      await open('/settings/usage');
      const lines = (navigation: string): Promise<string[]> =>
        page.locator(navigation).evaluateAll((links) => {
          const styles = links.map((link) => getComputedStyle(link));
          return styles.map(
            ({ borderBottomColor, textDecorationLine }) => `${borderBottomColor} ${textDecorationLine}`,
          );
        });
      for (const navigation of ['.settings-nav', '.ranges']) {
        const [current = ''] = await lines(`${navigation} a[aria-current]`);
        assert.ok(!(await lines(`${navigation} a:not([aria-current])`)).includes(current), navigation);
      }
      const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      const bar = await page
        .locator('.chart-bar')
        .first()
        .evaluate((element) => getComputedStyle(element).fill);
      assert.notEqual(bar, background);
      // Half of the minute's limit is used. At its edge, the meter has a line.
      const meter = await page.locator('meter').first().screenshot();
      const [edge, full, empty] = await coloursOf(page, meter, [
        [0, 0.5],
        [0.25, 0.5],
        [0.75, 0.5],
      ]);
      assert.equal(new Set([edge, full, empty]).size, 3, [edge, full, empty].join('; '));
      await open('/settings/keys');
      const button = await page.locator('.button-primary').screenshot();
      const [pressable] = await coloursOf(page, button, [[0.03, 0.5]]);
      assert.notEqual(pressable, background);
      for (const style of await page
        .locator('.badge')
        .evaluateAll((badges) => badges.map((badge) => getComputedStyle(badge).borderTopStyle)))
        assert.equal(style, 'solid');
    });

    it('a printed list of keys has exact times in place of relative ones, and no actions', async () => {
      const { page, open } = watched;
      await open('/settings/keys');
      await page.emulateMedia({ media: 'print' });
      assert.equal(await page.locator('.key-actions:visible').count(), 0);
      const times = await page.locator('time[title]').evaluateAll((elements) =>
        elements.map((time) => ({
          relative: getComputedStyle(time).fontSize,
          shown: getComputedStyle(time, '::after').content,
          exact: `"${time.getAttribute('title') ?? ''}"`,
        })),
      );
      assert.ok(times.length > 0);
      for (const { relative, shown, exact } of times) assert.deepEqual([relative, shown], ['0px', exact]);
    });

    it('on a phone, rolling and revoking are targets for a finger, and signing out keeps to the page in a contrast theme', async () => {
      const { page, open } = watched;
      await resize(page, { width: 390, height: 844 });
      await open('/settings/keys');
      const boxes = await page
        .locator('.key-actions > a')
        .evaluateAll((links) => links.map((link) => link.getBoundingClientRect().height));
      assert.ok(boxes.length > 0 && Math.min(...boxes) >= 44, boxes.join());
      await page.emulateMedia({ forcedColors: 'active' });
      const ends = await page
        .locator('.settings-header, .settings-header .button')
        .evaluateAll((parts) => parts.map((part) => part.getBoundingClientRect().right));
      assert.equal(new Set(ends).size, 1, ends.join());
    });

    it('a form that was stopped by the browser can be sent again after ten seconds, and not before', async () => {
      // A profile keeps such a clock for good.
      const apart = await browser.newPage();
      await signInQuietly(apart, service, developerId);
      const { page, open } = apart;
      await page.clock.install();
      await open('/settings/keys/new');
      let sent = 0;
      await page.route('**/settings/keys/new', async (route) => {
        if (route.request().method() !== 'POST') return route.continue();
        sent += 1;
        // As after Stop: the page stays.
        return route.fulfill({ status: 204 });
      });
      const send = (): Promise<void> => page.getByRole('button', { name: 'Create key' }).click();
      const sentTimes = (times: number): Promise<unknown> =>
        eventually('the form is sent', () => Promise.resolve(sent === times));
      await send();
      await sentTimes(1);
      await send();
      await page.clock.runFor(9_000);
      assert.equal(sent, 1);
      await page.clock.runFor(1_000);
      await send();
      await sentTimes(2);
      await apart.close();
    });

    it('a label of 200 letters without a space makes no page of its key wider than a narrow screen', async () => {
      const { page, open } = watched;
      const label = 'W'.repeat(200);
      const { prefix } = await createKey(service.db, { developerId, planId: 'pro', label });
      const withKeys = settingsPages(prefix).filter((path) => !/passkeys|sessions/.test(path));
      await resize(page, { width: 320, height: 640 });
      const assertNarrow = async (): Promise<void> =>
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 320, page.url());
      for (const path of [...withKeys, `/settings/usage?key=${prefix}`, '/settings/keys?q=WWW']) {
        await open(path);
        await assertNarrow();
      }
      await open(`/settings/keys/new?label=${label}`);
      await page.getByRole('button', { name: 'Create key' }).click();
      await page.getByText('You already have an active key').waitFor();
      await assertNarrow();
      await open(`/settings/keys/${prefix}/roll`);
      await page.getByRole('button', { name: 'Roll key' }).click();
      await page.getByRole('heading', { name: 'Key rolled' }).waitFor();
      await assertNarrow();
      await page.getByRole('link', { name: 'Done' }).click();
      await page.getByText('Replaces').waitFor();
      await assertNarrow();
    });

    it('the chart of the performance guide is dark on a dark screen', async () => {
      const { page, open } = watched;
      const colours = new Set<string | undefined>();
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        await open('/docs/guides/performance');
        const picture = page.locator('.prose img').first();
        await picture.evaluate((image: HTMLImageElement) => image.decode());
        colours.add((await coloursOf(page, await picture.screenshot(), [[0.5, 0.02]]))[0]);
      }
      assert.deepEqual([...colours], ['rgb(255, 255, 255)', 'rgb(22, 26, 35)']);
    });
  });
});

/** In the page: how far its text begins to the right of the header's first part, in whole pixels. */
function textIndent(): number {
  const texts = document.createTreeWalker(document.querySelector('main') ?? document, NodeFilter.SHOW_TEXT);
  const edges: number[] = [];
  for (let text = texts.nextNode(); text !== null; text = texts.nextNode()) {
    const range = document.createRange();
    range.selectNodeContents(text);
    const { left, width } = range.getBoundingClientRect();
    // A link to a heading hangs in the margin while the pointer is on it.
    const isShown = text.parentElement?.closest('.visually-hidden, svg, .anchor') === null && width > 0;
    if (isShown && text.textContent?.trim() !== '') edges.push(Math.round(left));
  }
  return Math.min(...edges) - Math.round(document.querySelector('.brand')?.getBoundingClientRect().left ?? NaN);
}

/** In the page: the elements that a selector finds, by their names, classes and data. */
function kindsOf(selector: string): string[] {
  return Array.from(document.querySelectorAll<HTMLElement>(selector), ({ localName, className, dataset }) =>
    [localName, className, ...Object.keys(dataset)].join(' '),
  );
}

/** Fails unless the tab key reaches every link and control, and shows which one has the focus. */
async function assertKeyboardReachesAll(page: Page): Promise<void> {
  const wanted = await page.evaluate(countStops, FOCUSABLE);
  await page.evaluate(recordFocus);
  await Promise.all(Array.from({ length: wanted }, () => page.keyboard.press('Tab')));
  const stops = await page.evaluate(() => (globalThis as unknown as { stops: Stop[] }).stops);
  assert.deepEqual(
    stops.filter(({ isVisible }) => !isVisible).map(({ html }) => html),
    [],
    'the focus is invisible',
  );
  assert.equal(new Set(stops.map(({ place }) => place)).size, wanted);
}

/** An element that has had the focus. */
interface Stop {
  /** Its number among all elements. */
  readonly place: number;
  readonly html: string;
  readonly isVisible: boolean;
}

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

/** In the page: records each element that gets the focus, and whether that is visible. */
function recordFocus(): void {
  const elements = Array.from(document.querySelectorAll('*'));
  const stops: Stop[] = [];
  Object.assign(globalThis, { stops });
  document.addEventListener('focusin', ({ target }) => {
    if (!(target instanceof Element)) return;
    // The label of a hidden radio button shows its focus.
    const shown = [target, ...(target instanceof HTMLInputElement ? (target.labels ?? []) : [])].map((it) =>
      getComputedStyle(it),
    );
    stops.push({
      place: elements.indexOf(target),
      html: target.outerHTML.slice(0, 120),
      isVisible: shown.some(
        ({ outlineStyle, outlineWidth }) => outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2,
      ),
    });
  });
}
