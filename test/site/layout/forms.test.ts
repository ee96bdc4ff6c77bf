import assert from 'node:assert/strict';
import type { Page, Request } from 'playwright-core';
import { createKey, findKeyOf, listKeys } from '../../../src/keys/keys.js';
import { newDeveloper } from '../../support/http/visitor.js';
import type { TestBrowser, WatchedPage } from '../../support/programs/browser.js';
import type { TestService } from '../../support/service.js';
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

  /** Opens a page as nobody. */
  async function visit(path: string, javaScript: boolean): Promise<Page> {
    watched = profiles[`${javaScript}`];
    await watched.page.context().clearCookies();
    await watched.open(path);
    return watched.page;
  }

  /** Opens a page as the developer of the test. */
  async function signIn(path: string, javaScript: boolean): Promise<Page> {
    watched = profiles[`${javaScript}`];
    await signInQuietly(watched, service, developerId);
    await watched.open(path);
    return watched.page;
  }

  for (const javaScript of [true, false]) {
    for (const [what, interrupt, said] of [
      [
        'the sign-in had become too old',
        () =>
          service
            .db('sessions')
            .where({ developer_id: developerId })
            .update({ signed_in_at: service.db.raw("now() - interval '16 minutes'") }),
        'You signed in more than 15 minutes ago, so we asked you to sign in again.',
      ],
      [
        'the session had ended',
        () => service.db('sessions').where({ developer_id: developerId }).delete(),
        'Your session had ended.',
      ],
    ] as const) {
      it(`what was typed comes back after a new sign-in when ${what}, ${javaScript ? 'with' : 'without'} scripts`, async () => {
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
        if (javaScript && what === 'the session had ended') await assertFits(page, { part: 'main' });
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

    it(`a text that is no key gets a summary with the focus, and is not shown again, ${javaScript ? 'with' : 'without'} scripts`, async () => {
      const page = await visit('/revoke-leaked-key', javaScript);
      await page.getByLabel('API key').fill('svc_incomplete');
      await page.getByRole('button', { name: 'Revoke key' }).click();
      const summary = page.getByRole('alert');
      await summary.getByRole('link', { name: 'This is not a complete key.' }).waitFor();
      assert.match(await page.title(), /^Error: /);
      assert.equal(await summary.evaluate((element) => element === document.activeElement), true);
      assert.ok(!(await page.content()).includes('svc_incomplete') && !page.url().includes('svc_'));
      if (javaScript) await assertFits(page, { part: 'main' });
    });

    it(`errors have a summary with the focus that leads to each field, and a title, ${javaScript ? 'with' : 'without'} scripts`, async () => {
      const page = await signIn(NEW, javaScript);
      await page.getByLabel('Expires').selectOption('date');
      await page.getByRole('button', { name: 'Create key' }).click();
      const summary = page.getByRole('alert');
      await summary.getByText('Nothing was changed.').waitFor();
      assert.match(await page.title(), /^Error: Create a key/);
      assert.equal(await summary.evaluate((element) => element === document.activeElement), true);
      await summary.getByRole('link', { name: 'Enter an expiry date.' }).press('Enter');
      const date = page.getByLabel('Expiry date');
      assert.equal(await date.evaluate((element) => element === document.activeElement), true);
      assert.equal(await date.getAttribute('aria-invalid'), 'true');
      assert.equal(await date.getAttribute('aria-describedby'), 'date-error date-hint');
    });

    it(`an expiry date is kept to the second, or replaced by any other expiry, ${javaScript ? 'with' : 'without'} scripts`, async () => {
      const expires = { kind: 'after', seconds: 90 * 86_400 } as const;
      const { prefix, expiresAt } = await createKey(service.db, { developerId, planId: 'free', expires });
      const page = await signIn(`/settings/keys/${prefix}/expiry`, javaScript);
      const save = async (): Promise<string | null | undefined> => {
        await page.getByRole('button', { name: 'Save expiry' }).click();
        await page.waitForURL(`**/${prefix}`);
        return (await findKeyOf(service.db, developerId, prefix))?.expiresAt;
      };
      assert.equal(await save(), expiresAt);
      await page.getByText('No changes were made.').waitFor();
      await page.getByRole('link', { name: 'Change the expiry' }).click();
      await page.getByLabel('Expires').selectOption('date');
      await page.getByLabel('Expiry date').fill('2099-12-31');
      assert.equal(await save(), '2099-12-31T00:00:00.000000Z');
      await page.getByRole('link', { name: 'Change the expiry' }).click();
      await page.getByLabel('Expires').selectOption('date');
      await page.getByLabel('Expiry date').fill('2020-01-01');
      await page.getByLabel('Expires').selectOption('30');
      const days = Math.round((Date.parse((await save()) ?? '') - Date.now()) / 86_400_000);
      assert.equal(days, 30, 'a date that is not chosen does not stop the form');
      await page.getByRole('link', { name: 'Change the expiry' }).click();
      await page.getByLabel('Expires').selectOption('date');
      await page.getByLabel('Expiry date').pressSequentially('12');
      await page.getByLabel('Expires').selectOption('none');
      assert.equal(await save(), null, 'nor does half a date');
    });
  }

  for (const path of FORMS) {
    it(`the way back and forward over the answer of ${path} leads to pages, and sends nothing again`, async () => {
      const page = await signIn('/signed-out', true);
      const answered = page.waitForEvent('load');
      await page.evaluate((action) => {
        const form = Object.assign(document.createElement('form'), { method: 'post', action });
        document.body.append(form);
        form.submit();
      }, path);
      await answered;
      // Only the script requests it.
      if ((await page.evaluate(() => document.contentType)) !== 'text/html') return;
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
    });
  }
});
