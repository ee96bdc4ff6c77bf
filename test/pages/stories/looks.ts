import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { createKey } from '../../../src/keys/keys.js';
import { signInOperator } from '../../support/http/operator.js';
import { signIn, Visitor } from '../../support/http/visitor.js';
import { send } from '../../support/request.js';
import { AXE, type WatchedPage } from '../../support/programs/browser.js';
import { kindsOf } from '../page-html.js';
import { operatorPages, PAGES, settingsPages } from '../pages.js';
import { crawl, type Seen } from '../crawl.js';
import { PEOPLE } from '../people.js';
import { serveWithoutDatabase } from '../site-alone.js';
import { assertFits, FOCUSABLE, signInOperatorQuietly, signInQuietly, type Novelty } from '../visits.js';
import type { Stage } from './stage.js';

/** In place of a page that does not exist stands an error page. */
const NO_PAGE = '/no-such-page';

/** The page of the search with results. */
const RESULTS = '/docs/search?q=key';

/** What only the script makes useful, as a selector and as a kind of element. */
const SCRIPTED = '.scripted, [data-copy], [data-passkey]';
const NEEDS_SCRIPT = /\bscripted\b|data-copy|data-passkey/;

const ATTACK = '"><script>document.title = "attacked"</script><img src="x" onerror="document.title = \'attacked\'">';

/** Somebody who opens pages. */
interface Reader {
  /** All that they get to see. */
  readonly answers: AsyncIterable<Seen>;
  readonly origin?: string | undefined;
  readonly signIn: (watched: WatchedPage) => Promise<void>;
}

/** What an address that asks too often is answered with, and anybody while the database is lost. */
async function* refusals(): AsyncGenerator<Seen> {
  const { url, server } = await serveWithoutDatabase({ running: 1, waiting: 9, perAddress: 9, perWindow: 1 });
  const headers = { accept: 'text/html', cookie: `catalog-session=${'f'.repeat(64)}` };
  for (const path of ['/settings', '/settings/keys']) yield { path, reply: await send(url, path, { headers }) };
  server.close();
}

async function* inTurn(...parts: readonly AsyncIterable<Seen>[]): AsyncGenerator<Seen> {
  for (const part of parts) yield* part;
}

/** How pages look: each kind of element once, on the first page that has it. */
export function looks(stage: Stage): void {
  let developerId: number;
  /** A key of the developer. */
  let prefix: string;
  /** The kinds of elements on the pages that were opened. */
  const opened = new Set<string>();

  before(async () => {
    const { db } = stage.service;
    ({ developerId, prefix } = await PEOPLE.many(db));
    await db('developers')
      .where({ id: developerId })
      .update({ project_name: `A rather long name ${ATTACK}` });
    await db('api_keys').where({ prefix }).update({ label: ATTACK });
  });

  /** Who opens which pages. */
  const READERS: Readonly<Record<string, () => Promise<Reader>>> = {
    'somebody who is not signed in': () => {
      const visitor = new Visitor(stage.service.url);
      return Promise.resolve({
        answers: inTurn(crawl(visitor, [...PAGES, RESULTS, NO_PAGE]), refusals()),
        signIn: () => Promise.resolve(),
      });
    },
    'a developer': async () => ({
      answers: inTurn(
        crawl(await signIn(stage.service, developerId), [...settingsPages(prefix), '/sign-in']),
        crawl(await signIn(stage.service, stage.developerId), settingsPages(prefix)),
      ),
      signIn: (watched) => signInQuietly(watched, stage.service, developerId),
    }),
    'an operator': async () => ({
      answers: crawl(await signInOperator(stage.service), [
        ...[developerId, stage.developerId].flatMap((id) => operatorPages({ id: String(id), prefix })),
        NO_PAGE,
      ]),
      origin: stage.service.operatorUrl,
      signIn: (watched) => signInOperatorQuietly(watched, stage.service),
    }),
  };

  for (const [who, arrive] of Object.entries(READERS)) {
    it(`all that ${who} gets to see is accessible on light, dark and narrow screens, by the keyboard and without scripts`, async () => {
      const { answers, origin, signIn: enter } = await arrive();
      const open = async (javaScript: boolean): Promise<WatchedPage> => {
        const watched = await stage.newProfile({ origin, javaScript });
        await enter(watched);
        return watched;
      };
      const scripted = await open(true);
      // Once for all pages: to send it after each would take longer than all else that axe does.
      await scripted.page.addInitScript(AXE);
      let scriptless: WatchedPage | undefined;
      for await (const seen of answers) {
        const kinds = [...kindsOf(seen.reply.text)].filter((kind) => !opened.has(kind));
        if (kinds.length === 0) continue;
        for (const kind of kinds) opened.add(kind);
        await assertLooks(scripted, seen);
        if (!kinds.some((kind) => NEEDS_SCRIPT.test(kind))) continue;
        scriptless ??= await open(false);
        await show(scriptless, seen);
        assert.equal(await scriptless.page.locator(SCRIPTED).filter({ visible: true }).count(), 0, seen.path);
      }
    });
  }

  /** Shows an answer as it came, since the same request might be answered otherwise now. */
  async function show({ page, open }: WatchedPage, { path, reply: { status, headers, text } }: Seen): Promise<void> {
    const { 'content-length': _length, 'set-cookie': _cookies, ...rest } = headers as Record<string, string>;
    await page.route(
      (url) => url.pathname + url.search === path,
      (route) => route.fulfill({ status, headers: rest, body: text }),
      { times: 1 },
    );
    assert.equal(await open(path), status, path);
  }

  async function assertLooks(watched: WatchedPage, seen: Seen): Promise<void> {
    const { page, assertNoFault } = watched;
    await show(watched, seen);
    // The browser itself complains about every other status.
    if (seen.reply.status === 200) assertNoFault();
    const prepare = async ({ isFocusable }: Novelty): Promise<void> => {
      if (isFocusable) await assertKeyboardReachesAll(page);
      // axe skips what is folded away.
      await page.evaluate(() => {
        document.querySelectorAll('details').forEach((details) => (details.open = true));
      });
    };
    await assertFits(page, { prepare });
    assert.notEqual(await page.title(), 'attacked');
  }

  it('the navigation shows the current tab on the narrowest screen', async () => {
    const { page, open } = await stage.signIn('/settings', { width: 320, height: 640 });
    await open('/settings/sessions');
    const tab = await page.locator('.settings-nav [aria-current]').boundingBox();
    assert.ok(tab !== null && tab.x >= 0 && tab.x + tab.width <= 320, JSON.stringify(tab));
  });

  it('a label of 200 letters without a space makes no page of its key wider than a narrow screen', async () => {
    const label = 'W'.repeat(200);
    const { prefix } = await createKey(stage.service.db, { developerId: stage.developerId, planId: 'pro', label });
    const { page, open } = await stage.signIn('/settings', { width: 320, height: 640 });
    for (const path of ['', `/keys/${prefix}`, `/keys/${prefix}/revoke`, `/usage?key=${prefix}`, '/keys?q=WWW']) {
      await open(`/settings${path}`);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 320, path);
    }
  });
}

/** Fails unless the tab key reaches every link and control, and shows which one has the focus. */
async function assertKeyboardReachesAll(page: Page): Promise<void> {
  const wanted = await page.evaluate(countStops, FOCUSABLE);
  // The key also stops at each part of a time.
  const times = await page.locator('input[type=datetime-local]').count();
  await page.evaluate(recordFocus);
  // Once more than that, since an error that has the focus makes the key begin in the middle and pass the address bar.
  await Promise.all(Array.from({ length: wanted + 7 * times + 1 }, () => page.keyboard.press('Tab')));
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
