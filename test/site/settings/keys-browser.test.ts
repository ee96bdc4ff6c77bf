import assert from 'node:assert/strict';
import type { Page, Route } from 'playwright-core';
import { createSignInLink } from '../../../src/accounts/sign-in-links.js';
import { reinstateDeveloper, suspendDeveloper } from '../../../src/developers/developers.js';
import { listKeys } from '../../../src/keys/keys.js';
import { eventually } from '../../support/eventually.js';
import { newDeveloper } from '../../support/http/visitor.js';
import {
  assertAccessible,
  DARK_RULES,
  leaveKept,
  NARROW_RULES,
  startBrowser,
  type TestBrowser,
  type View,
  type WatchedPage,
} from '../../support/programs/browser.js';
import { skipWithout } from '../../support/programs/skip.js';
import { CHROMIUM, findProgram } from '../../support/programs/system-program.js';
import { startService, type TestService } from '../../support/service.js';

const KEY = /svc_[0-9A-Za-z]{8}_[0-9A-Za-z]{38}/;

describe('the keys page in Chromium', () => {
  let service: TestService;
  let browser: TestBrowser;
  let developerId: number;
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

  beforeEach(async () => (developerId = await newDeveloper(service)));
  afterEach(() => watched.close());

  /** Signs in by a link, and opens a page of the settings. */
  async function signIn(view: View, path: string): Promise<Page> {
    watched = await browser.newPage(view);
    const { page, open } = watched;
    await open(`/sign-in/link/${await createSignInLink(service.db, developerId)}`);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.waitForURL('**/settings');
    await open(path);
    return page;
  }

  async function create(page: Page, label: string): Promise<string> {
    await page.goto('/settings/keys/new');
    await page.getByLabel('Label').fill(label);
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByRole('heading', { name: 'Key created' }).waitFor();
    return shownKey(page);
  }

  async function shownKey(page: Page): Promise<string> {
    return KEY.exec(await page.locator('.secret code').innerText())?.[0] ?? assert.fail('no key is shown');
  }

  async function statusOf(key: string): Promise<number> {
    return (await service.get('/api/v1/me', { headers: { 'x-api-key': key } })).status;
  }

  for (const javaScript of [true, false]) {
    it(`goes through the life of a key ${javaScript ? 'with' : 'without'} scripts`, async () => {
      const page = await signIn({ javaScript }, '/settings/keys');
      await page.getByText('You have no active keys').waitFor();
      await page.getByRole('link', { name: 'Create a key' }).click();
      await page.getByLabel('Label').fill('production');
      await page.getByLabel('Expires').selectOption('In 365 days');
      await page.getByRole('button', { name: 'Create key' }).click();
      const first = await shownKey(page);
      assert.equal(await page.locator('.code-block').count(), 4);
      assert.equal(await statusOf(first), 200);
      if (javaScript) {
        await page.locator('.secret .copy-button').click();
        await page.getByRole('button', { name: 'Copied' }).waitFor();
        assert.equal(await page.evaluate(() => navigator.clipboard.readText()), first);
      }

      await page.getByRole('link', { name: 'Done' }).click();
      await page.getByRole('link', { name: `Roll ${first.slice(0, 12)}` }).click();
      await page.getByLabel('1 hour').check();
      await page.getByRole('button', { name: 'Roll key' }).click();
      await page.getByRole('heading', { name: 'Key rolled' }).waitFor();
      const second = await shownKey(page);
      assert.deepEqual([await statusOf(first), await statusOf(second)], [200, 200]);

      await page.getByRole('link', { name: 'Done' }).click();
      await page.getByText('Rolled', { exact: true }).waitFor();
      await page.getByRole('link', { name: `Revoke ${first.slice(0, 12)}` }).click();
      await page.getByRole('button', { name: `Revoke ${first.slice(0, 12)}` }).click();
      await page.getByText('has been revoked. Requests with it now fail.').waitFor();
      assert.deepEqual([await statusOf(first), await statusOf(second)], [401, 200]);

      await page.getByRole('link', { name: 'Events' }).click();
      await page.getByText('Key rolled:').waitFor();
      await page.goto('/revoke-leaked-key');
      await page.getByLabel('API key').fill(second);
      await page.getByRole('button', { name: 'Revoke key' }).click();
      await page.getByText('The key has been revoked').waitFor();
      assert.equal(await statusOf(second), 401);
      await page.goto('/settings/events');
      await page.getByText('Somebody who found the key').waitFor();
      watched.assertNoFault();
    });

    it(`makes one key of a double click ${javaScript ? 'with' : 'without'} scripts`, async () => {
      const page = await signIn({ javaScript }, '/settings/keys/new');
      await page.getByRole('button', { name: 'Create key' }).dblclick();
      // Without a script the browser may show the answer to the second click, which says what to do.
      await page
        .getByRole('heading', { name: javaScript ? 'Key created' : /^(Key created|Your keys were not changed)$/ })
        .waitFor();
      const keys = await listKeys(service.db, developerId);
      assert.equal(keys.length, 1);
      if (javaScript) assert.match(await shownKey(page), KEY);
    });
  }

  it('sends a form once, however often one clicks: the answer to a second one would take the place of the key', async () => {
    const page = await signIn({}, '/settings/keys/new');
    const button = (await page.getByRole('button', { name: 'Create key' }).boundingBox()) ?? assert.fail();
    const [x, y] = [button.x + button.width / 2, button.y + button.height / 2];
    const sent: Route[] = [];
    await page.route('**/settings/keys/new', async (route) => {
      sent.push(route);
    });
    await page.mouse.click(x, y);
    await eventually('the form is sent', () => sent.length > 0);
    // A locator would wait for the answer.
    await page.mouse.click(x, y);
    for (const route of sent) await route.continue();
    assert.match(await shownKey(page), KEY);
    assert.equal(sent.length, 1);
  });

  it('shows a key once: not after leaving and coming back, not by a reload, and not in another tab', async () => {
    const page = await signIn({}, '/settings/keys');
    const key = await create(page, 'once');
    await page.reload();
    await page.getByText('This form was already sent').waitFor();
    assert.ok(!(await page.locator('body').innerText()).includes(key));
    const another = await create(page, 'twice');
    await page.goto('/settings/keys');
    // The browser has nothing to show: it was told to keep nothing.
    await assert.rejects(page.goBack(), /ERR_CACHE_MISS/);
    assert.ok(!(await page.locator('body').innerText()).includes(another));
    const tab = await page.context().newPage();
    await tab.goto('/settings/keys');
    assert.ok(!(await tab.locator('body').innerText()).includes(another));
    assert.equal((await listKeys(service.db, developerId)).length, 2);
  });

  it('removes the key from a page that the browser keeps for the way back', async () => {
    const page = await signIn({}, '/settings/keys');
    const key = await create(page, 'kept');
    await leaveKept(page);
    assert.ok(!(await page.locator('body').innerText()).includes(key));
    await page.getByText('This key is no longer shown.').waitFor();
  });

  it('keeps two tabs apart: each form makes its key, and a key that one has revoked is refused to the other', async () => {
    const first = await signIn({}, '/settings/keys/new');
    const second = await first.context().newPage();
    await second.goto('/settings/keys/new');
    for (const page of [first, second]) {
      await page.getByRole('button', { name: 'Create key' }).click();
      assert.equal(await statusOf(await shownKey(page)), 200);
    }
    const [{ prefix } = assert.fail()] = await listKeys(service.db, developerId);
    await first.goto(`/settings/keys/${prefix}/roll`);
    await second.goto(`/settings/keys/${prefix}/revoke`);
    await second.getByRole('button', { name: `Revoke ${prefix}` }).click();
    await second.getByText('has been revoked.').waitFor();
    await first.getByRole('button', { name: 'Roll key' }).click();
    await first.getByText('This key is revoked. Create a new key.').waitFor();
    assert.equal((await listKeys(service.db, developerId)).length, 2);
  });

  it('ends a tab whose session was ended elsewhere', async () => {
    const page = await signIn({}, '/settings/keys/new');
    await service.db('sessions').where({ developer_id: developerId }).delete();
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.waitForURL('**/sign-in');
    assert.deepEqual(await listKeys(service.db, developerId), []);
  });

  it('shows a suspended developer that the keys are refused, and nothing that changes them', async () => {
    const page = await signIn({}, '/settings/keys');
    const key = await create(page, 'production');
    await page.goto(`/settings/keys/${key.slice(0, 12)}/revoke`);
    await suspendDeveloper(service.db, developerId);
    assert.equal(await statusOf(key), 401);
    // The page was open before.
    await page.getByRole('button', { name: 'Revoke' }).click();
    await page.getByText('you can view the settings but not change them.').waitFor();
    await page.goto('/settings/keys');
    await page.getByText('Your account is suspended.').waitFor();
    assert.equal(
      await page
        .locator('main')
        .getByRole('link', { name: /Roll|Revoke|Create/ })
        .count(),
      0,
    );
    await assertAccessible(page);
    await reinstateDeveloper(service.db, developerId);
    assert.equal(await statusOf(key), 200);
    await page.reload();
    assert.equal(await page.getByText('Your account is suspended.').count(), 0);
    await page.getByRole('link', { name: `Roll ${key.slice(0, 12)}` }).waitFor();
  });

  it('is accessible, and does not scroll sideways at 320 pixels, light and dark', async () => {
    for (const view of [{ colorScheme: 'light' }, { colorScheme: 'dark', width: 320, height: 640 }] as const) {
      const page = await signIn(view, '/settings/keys');
      const key = await create(page, 'a label that is as long as a label of a key may well be in practice');
      await check(page, view);
      const prefix = key.slice(0, 12);
      for (const path of [`/${prefix}/roll`, `/${prefix}/revoke`]) {
        await page.goto(`/settings/keys${path}`);
        await check(page, view);
      }
      await page.goto('/settings/keys/new');
      await page.getByLabel('Expires').selectOption('On a date');
      await page.getByRole('button', { name: 'Create key' }).click();
      await page.getByText('Choose a date in the future').waitFor();
      assert.equal(await page.getByLabel('Expires').inputValue(), 'date');
      await check(page, view);
      await page.goto(`/settings/keys/${prefix}/roll`);
      await page.getByRole('button', { name: 'Roll key' }).click();
      await page.getByRole('heading', { name: 'Key rolled' }).waitFor();
      for (const path of ['/settings/keys', '/settings/events']) {
        await page.goto(path);
        await check(page, view);
      }
      await watched.close();
    }
  });

  /** Checks all on a light screen, and on a dark and narrow one what may differ there. */
  async function check(page: Page, { width, colorScheme }: View): Promise<void> {
    await assertAccessible(page, colorScheme === 'dark' ? [...DARK_RULES, ...NARROW_RULES] : undefined);
    const scrolled = await page.evaluate(() => document.documentElement.scrollWidth);
    if (width !== undefined) assert.equal(scrolled, width, page.url());
  }
});
