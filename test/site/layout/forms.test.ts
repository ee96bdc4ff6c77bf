import assert from 'node:assert/strict';
import type { Page, Request } from 'playwright-core';
import { createKey, findKeyOf, listKeys } from '../../../src/keys/keys.js';
import { newDeveloper, signIn as signInOverHttp } from '../../support/http/visitor.js';
import type { TestBrowser, WatchedPage } from '../../support/programs/browser.js';
import type { TestService } from '../../support/service.js';
import { testWorld } from '../../support/world.js';
import { FORMS } from '../pages.js';
import { assertFits, signInByLink, signInQuietly } from '../visits.js';
import { testBrowser } from '../../support/http/test-browser.js';

const NEW = '/settings/keys/new';

describe('a form in Chromium', () => {
  let service: TestService;
  let browser: TestBrowser;
  let developerId: number;
  /** With scripts and without them: one for all tests, since another profile costs a process. */
  let profiles: Readonly<Record<'true' | 'false', WatchedPage>>;
  let watched: WatchedPage;

  const started = testBrowser();
  before(async () => {
    ({ service, browser } = started());
    profiles = { true: await browser.newPage(), false: await browser.newPage({ javaScript: false }) };
  });

  beforeEach(async () => (developerId = await newDeveloper(service)));

  /** Opens a page as the developer of the test. */
  async function signIn(path: string, javaScript: boolean): Promise<Page> {
    watched = profiles[`${javaScript}`];
    await signInQuietly(watched, service, developerId);
    await watched.open(path);
    return watched.page;
  }

  for (const [what, javaScript, interrupt, said] of [
    [
      'the sign-in had become too old, with scripts',
      true,
      () =>
        service
          .db('sessions')
          .where({ developer_id: developerId })
          .update({ signed_in_at: service.db.raw("now() - interval '16 minutes'") }),
      'You signed in more than 15 minutes ago, so we asked you to sign in again.',
    ],
    [
      'the session had ended, without scripts',
      false,
      () => service.db('sessions').where({ developer_id: developerId }).delete(),
      'Your session had ended.',
    ],
  ] as const) {
    it(`what was typed comes back after a new sign-in when ${what}`, async () => {
      const page = await signIn(NEW, javaScript);
      await page.getByLabel('Label').fill('Produktion & “Test” +1');
      await page.getByLabel('Expires').selectOption('30');
      await interrupt();
      await page.getByRole('button', { name: 'Create key' }).click();
      await page.getByText('Your form was not processed, and nothing was changed.').waitFor();
      // Neither the way back nor another tab replaces the form.
      await watched.open(NEW);
      await page.getByText('Your form was not processed, and nothing was changed.').waitFor();
      await signInByLink(watched, service.db, developerId, `**${NEW}?*`);
      await page.getByRole('alert').getByText(`${said} Nothing was changed.`).waitFor();
      assert.equal(await page.getByLabel('Label').inputValue(), 'Produktion & “Test” +1');
      assert.equal(await page.getByLabel('Expires').inputValue(), '30');
      assert.deepEqual(await listKeys(service.db, developerId), []);
      if (javaScript) await assertFits(page, { part: 'main' });
      await page.getByRole('button', { name: 'Create key' }).click();
      await page.getByRole('heading', { name: 'Key created' }).waitFor();
      assert.deepEqual(
        (await listKeys(service.db, developerId)).map(({ label }) => label),
        ['Produktion & “Test” +1'],
      );
      await page.goBack();
      assert.equal(await page.getByText('Nothing was changed.').count(), 0, page.url());
    });
  }

  it('errors have a summary with the focus that leads to each field, and a title, without scripts too', async () => {
    const page = await signIn(NEW, false);
    await page.getByLabel('Expires').selectOption('date');
    await page.getByRole('button', { name: 'Create key' }).click();
    const summary = page.getByRole('alert');
    await summary.getByText('Nothing was changed.').waitFor();
    assert.match(await page.title(), /^Error: Create a key/);
    await summary.and(page.locator(':focus')).waitFor();
    await summary.getByRole('link', { name: 'Enter an expiry date.' }).press('Enter');
    const date = page.getByLabel('Expiry date');
    await date.and(page.locator(':focus')).waitFor();
    assert.equal(await date.getAttribute('aria-invalid'), 'true');
    assert.equal(await date.getAttribute('aria-describedby'), 'date-error date-hint');
  });

  it('an expiry date is kept to the second, or replaced by any other expiry', async () => {
    const expires = { kind: 'after', seconds: 90 * 86_400 } as const;
    const { prefix, expiresAt } = await createKey(service.db, { developerId, planId: 'free', expires });
    const page = await signIn(`/settings/keys/${prefix}/expiry`, true);
    const save = async (): Promise<string | null | undefined> => {
      await page.getByRole('button', { name: 'Save expiry' }).click();
      await page.waitForURL(`**/${prefix}`);
      return (await findKeyOf(service.db, developerId, prefix))?.expiresAt;
    };
    const choose = async (option: string): Promise<void> => {
      await page.getByLabel('Expires').selectOption(option);
    };
    const again = (): Promise<void> => page.getByRole('link', { name: 'Change the expiry' }).click();
    assert.equal(await save(), expiresAt);
    await page.getByText('No changes were made.').waitFor();
    await again();
    await choose('date');
    await page.getByLabel('Expiry date').fill('2099-12-31');
    assert.equal(await save(), '2099-12-31T00:00:00.000000Z');
    await again();
    await choose('date');
    await page.getByLabel('Expiry date').fill('2020-01-01');
    await choose('30');
    const days = Math.round((Date.parse((await save()) ?? '') - Date.now()) / 86_400_000);
    assert.equal(days, 30, 'a date that is not chosen does not stop the form');
    await again();
    await choose('date');
    await page.getByLabel('Expiry date').pressSequentially('12');
    await choose('none');
    assert.equal(await save(), null, 'nor does half a date');
  });

  it('the way back and forward over the answer to a form leads to pages, and sends nothing again', async () => {
    // The first one has a page of its own, the second one none.
    for (const path of [NEW, '/sign-in/link']) {
      const page = await signIn('/signed-out', true);
      const answered = page.waitForEvent('load');
      await page.evaluate((action) => {
        const form = Object.assign(document.createElement('form'), { method: 'post', action });
        document.body.append(form);
        form.submit();
      }, path);
      await answered;
      const sent: string[] = [];
      const note = (request: Request): void => {
        if (request.method() !== 'GET') sent.push(request.url());
      };
      page.on('request', note);
      for (const go of [() => page.goBack(), () => page.goForward()]) {
        const answer = await go();
        assert.ok(answer === null || answer.status() < 500, page.url());
        assert.equal(await page.evaluate(() => document.querySelectorAll('h1').length), 1);
      }
      page.off('request', note);
      assert.deepEqual(sent, []);
    }
  });
});

describe('the answer to a form', () => {
  const world = testWorld({ service: true });

  it('every form is answered with the address of a page that takes its place in the history of a browser', async () => {
    for (const path of FORMS) {
      const visitor = await signInOverHttp(world.service, await newDeveloper(world.service));
      const { status, headers, text } = await visitor.post(path);
      // Other pages are redirected to, and only the script requests what is no page.
      if (status === 303 || !String(headers['content-type']).startsWith('text/html')) continue;
      const [, address = assert.fail(path)] = / data-address="([^"]+)"/.exec(text) ?? [];
      const page = await visitor.get(address.replaceAll('&amp;', '&'));
      assert.ok(page.status === 200 || page.status === 303 || page.status === 404, `${path} ${address} ${page.status}`);
    }
  });
});
