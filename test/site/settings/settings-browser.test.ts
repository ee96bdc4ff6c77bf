import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { createSignInLink } from '../../../src/accounts/sign-in-links.js';
import { createKey } from '../../../src/keys/keys.js';
import { TABS } from '../../../src/site/settings/settings-page.js';
import { newDeveloper, signIn as signInByHttp } from '../../support/http/visitor.js';
import {
  assertAccessible,
  DARK_RULES,
  NARROW_RULES,
  resize,
  startBrowser,
  type TestBrowser,
  type View,
  type WatchedPage,
} from '../../support/programs/browser.js';
import { skipWithout } from '../../support/programs/skip.js';
import { CHROMIUM, findProgram } from '../../support/programs/system-program.js';
import { startService, type TestService } from '../../support/service.js';
import { settingsPages } from '../pages.js';

/** The width that WCAG 2.2 asks for, in CSS pixels (success criterion 1.4.10). */
const NARROWEST = 320;

const ATTACK = '"><script>document.title = "attacked"</script><img src="x" onerror="document.title = \'attacked\'">';

describe('the settings in Chromium', () => {
  let service: TestService;
  let browser: TestBrowser;
  let developerId: number;
  let watched: WatchedPage;
  /** The pages of somebody who is signed in. */
  let paths: string[];

  before(async function () {
    const program = findProgram(CHROMIUM) ?? skipWithout('Chromium', this);
    service = await startService();
    browser = await startBrowser(program, service.url);
    developerId = await newDeveloper(service, `A project with a rather long name ${ATTACK}`);
    for (const [planId, label] of [
      ['free', ATTACK],
      ['pro', 'production'],
    ] as const) {
      const { prefix } = await createKey(service.db, { developerId, planId, label });
      paths = [...settingsPages(prefix), '/sign-in'];
      await service.db.raw(
        `insert into api_key_usage (key_id, hour, served, refused, failed)
         select id, date_trunc('day', now(), 'UTC') - make_interval(days => n), 3000 + 200 * n, 40 * (n % 3), n % 2
           from api_keys, generate_series(0, 29) as n where prefix = ?`,
        [prefix],
      );
    }
  });

  after(async () => {
    // Undefined where the tests were skipped.
    await (browser as TestBrowser | undefined)?.close();
    await (service as TestService | undefined)?.stop();
  });

  afterEach(() => watched.close());

  /** Signs in by a link. */
  async function signIn(view: View = {}): Promise<Page> {
    watched = await browser.newPage(view);
    const { page, open } = watched;
    await open(`/sign-in/link/${await createSignInLink(service.db, developerId)}`);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.waitForURL('**/settings');
    return page;
  }

  it('have no fault that axe finds on a light, a dark or a narrow screen, and do not scroll sideways', async () => {
    const page = await signIn();
    for (const path of paths) {
      await resize(page, { width: 1280, height: 800 });
      await page.emulateMedia({ colorScheme: 'light' });
      await watched.open(path);
      await assertAccessible(page);
      await page.emulateMedia({ colorScheme: 'dark' });
      await assertAccessible(page, DARK_RULES);
      await resize(page, { width: NARROWEST, height: 640 });
      await assertAccessible(page, NARROW_RULES);
      const taken = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.equal(taken, NARROWEST, `${path} scrolls sideways`);
    }
  });

  it('show the newest day of the usage on a narrow screen, with its numbers, before anybody scrolls', async () => {
    const page = await signIn({ width: NARROWEST, height: 640 });
    await watched.open('/settings/usage');
    const shown = await page.evaluate(() => {
      const parts = ['.usage-chart .chart g:last-of-type .chart-bar', '.usage-chart .chart-label'];
      const places = parts.map((part) => document.querySelector(part)?.getBoundingClientRect());
      return places.map((place) => place !== undefined && place.left >= 0 && place.right <= innerWidth);
    });
    assert.deepEqual(shown, [true, true]);
  });

  it('work with and without scripts, break no policy, and run nothing that a name or a label holds', async () => {
    for (const javaScript of [true, false]) {
      const page = await signIn({ javaScript });
      for (const path of paths) {
        await watched.open(path);
        await page.waitForLoadState('networkidle');
        assert.ok(!(await page.title()).includes('attacked'), path);
      }
      await watched.open('/settings/usage');
      await page.getByRole('row', { name: 'production' }).getByRole('link').click();
      await page.waitForURL('**/settings/usage?key=*');
      assert.equal(await page.locator('table').first().locator('tbody tr').count(), 1);
      watched.assertNoFault();
      if (javaScript) await watched.close();
    }
  });

  it('read from left to right beside a name that turns the direction of text', async () => {
    const { db } = service;
    const page = await signIn();
    await db('developers').where({ id: developerId }).update({ project_name: 'Film club \u202E' });
    await watched.open('/sign-in');
    // The link stands in one line with the name.
    const [first, last] = await page.getByText('Go to the settings').evaluate((link) => {
      const text = link.firstChild as Text;
      return [0, text.length - 1].map((at) => {
        const range = document.createRange();
        range.setStart(text, at);
        range.setEnd(text, at + 1);
        return range.getBoundingClientRect().left;
      });
    });
    assert.ok(first !== undefined && last !== undefined && first < last, `${String(first)}, ${String(last)}`);
  });

  it('are reached by the keyboard alone: each link and button', async () => {
    const page = await signIn();
    await watched.open('/settings/usage');
    const prefix = await page.getByRole('row', { name: 'production' }).getByRole('link').innerText();
    const reached = new Set<string>();
    for (let stop = 0; stop < 60; stop += 1) {
      await page.keyboard.press('Tab');
      const focused = await page.evaluate(() => {
        const element = document.activeElement;
        if (element === null || element === document.body) return undefined;
        const { outlineStyle } = getComputedStyle(element);
        return {
          name: element.getAttribute('aria-label') ?? element.textContent.trim(),
          isVisible: outlineStyle !== 'none',
        };
      });
      if (focused === undefined) break;
      assert.ok(focused.isVisible, focused.name);
      reached.add(focused.name);
    }
    for (const name of ['Sign out', ...TABS.map(({ label }) => label), prefix, 'Download as CSV']) {
      assert.ok(reached.has(name), `${name} is not among ${[...reached].join(', ')}`);
    }
  });

  it('are gone after signing out, also by the back button', async () => {
    const page = await signIn();
    await watched.open('/settings/usage');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.waitForURL('**/sign-in');
    await page.goBack();
    await page.waitForURL('**/sign-in');
    assert.ok(!(await page.content()).includes('A project with'));
  });

  it('are gone when the session was ended elsewhere', async () => {
    const page = await signIn();
    const elsewhere = await signInByHttp(service, developerId);
    await elsewhere.post('/settings/sessions/end-all');
    await page.getByRole('link', { name: 'Sessions' }).first().click();
    await page.waitForURL('**/sign-in');
  });

  it('show each session, end the one that is chosen, and end all', async () => {
    await service.db('sessions').where({ developer_id: developerId }).delete();
    await signInByHttp(service, developerId);
    const page = await signIn({ javaScript: false });
    await watched.open('/settings/sessions');
    assert.equal(await page.locator('tbody tr').count(), 2);
    await page.locator('tbody tr', { hasText: 'Visitor/1' }).getByRole('button').click();
    await page.waitForURL('**/settings/sessions');
    assert.equal(await page.locator('tbody tr').count(), 1);
    await page.getByRole('button', { name: 'End all sessions' }).click();
    await page.waitForURL('**/sign-in');
  });

  describe('against another site in the same browser', () => {
    /** A site on another port of this machine: browsers send it the same cookies. */
    async function visitAttacker(page: Page, html: string, act: () => Promise<void>): Promise<void> {
      const server = createServer((_request, response) => {
        response.writeHead(200, { 'content-type': 'text/html' }).end(html);
      });
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      try {
        await page.goto(`http://127.0.0.1:${String((server.address() as AddressInfo).port)}/`);
        await act();
      } finally {
        server.closeAllConnections();
        server.close();
      }
    }

    it('a form that it sends signs nobody out', async () => {
      const page = await signIn();
      const html = `<form method="post" action="${service.url}/sign-out"><button>Win</button></form>`;
      await visitAttacker(page, html, async () => {
        await page.getByRole('button', { name: 'Win' }).click();
        await page.getByText('was not sent from a page of this service').waitFor();
      });
      assert.equal(await watched.open('/settings'), 200);
      assert.ok(page.url().endsWith('/settings'));
    });

    it('no page can be put into a frame, where a person might click what they do not see', async () => {
      const page = await signIn();
      await visitAttacker(page, `<iframe src="${service.url}/settings"></iframe>`, async () => {
        await page.waitForLoadState('networkidle');
        assert.equal(await page.frameLocator('iframe').getByRole('button', { name: 'Sign out' }).count(), 0);
      });
    });
  });
});
