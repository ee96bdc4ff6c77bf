import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { listKeys } from '../../../src/keys/keys.js';
import { newDeveloper } from '../../support/http/visitor.js';
import { startBrowser, type TestBrowser, type WatchedPage } from '../../support/programs/browser.js';
import { skipWithout } from '../../support/programs/skip.js';
import { CHROMIUM, findProgram } from '../../support/programs/system-program.js';
import { startService, type TestService } from '../../support/service.js';
import { FORMS } from '../pages.js';
import { assertFits, signInByLink } from '../visits.js';

const NEW = '/settings/keys/new';

describe('a form in Chromium', () => {
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
    // Undefined if the tests were skipped.
    await (browser as TestBrowser | undefined)?.close();
    await (service as TestService | undefined)?.stop();
  });

  beforeEach(async () => (developerId = await newDeveloper(service)));
  afterEach(() => watched.close());

  async function signIn(path: string, javaScript = true): Promise<Page> {
    watched = await browser.newPage({ javaScript });
    await signInByLink(watched, service.db, developerId);
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
        'Your sign-in was too old for this.',
      ],
      [
        'the session had ended',
        () => service.db('sessions').where({ developer_id: developerId }).delete(),
        'You had been signed out.',
      ],
    ] as const) {
      it(`what was typed comes back after a new sign-in when ${what}, ${javaScript ? 'with' : 'without'} scripts`, async () => {
        const page = await signIn(NEW, javaScript);
        await page.getByLabel('Label').fill('Produktion & “Test” +1');
        await page.getByLabel('Expires').selectOption('30');
        await interrupt();
        await page.getByRole('button', { name: 'Create key' }).click();
        await page.getByText('Your form was not processed, and nothing was changed.').waitFor();
        await signInByLink(watched, service.db, developerId, `**${NEW}?*`);
        await page.getByRole('alert').getByText(`${said} Nothing was changed.`).waitFor();
        assert.equal(await page.getByLabel('Label').inputValue(), 'Produktion & “Test” +1');
        assert.equal(await page.getByLabel('Expires').inputValue(), '30');
        assert.deepEqual(await listKeys(service.db, developerId), []);
        if (javaScript) await assertFits(page);
        await page.getByRole('button', { name: 'Create key' }).click();
        await page.getByRole('heading', { name: 'Key created' }).waitFor();
        assert.deepEqual(
          (await listKeys(service.db, developerId)).map(({ label }) => label),
          ['Produktion & “Test” +1'],
        );
      });
    }

    it(`a text that is no key gets a summary with the focus, and is not shown again, ${javaScript ? 'with' : 'without'} scripts`, async () => {
      watched = await browser.newPage({ javaScript });
      const { page } = watched;
      await watched.open('/revoke-leaked-key');
      await page.getByLabel('API key').fill('svc_incomplete');
      await page.getByRole('button', { name: 'Revoke key' }).click();
      const summary = page.getByRole('alert');
      await summary.getByRole('link', { name: 'This is not a complete key.' }).waitFor();
      assert.match(await page.title(), /^Error: /);
      assert.equal(await summary.evaluate((element) => element === document.activeElement), true);
      assert.ok(!(await page.content()).includes('svc_incomplete') && !page.url().includes('svc_'));
      if (javaScript) await assertFits(page);
    });

    it(`errors have a summary with the focus that leads to each field, and a title, ${javaScript ? 'with' : 'without'} scripts`, async () => {
      const page = await signIn(NEW, javaScript);
      await page.getByLabel('Expires').selectOption('date');
      await page.getByRole('button', { name: 'Create key' }).click();
      const summary = page.getByRole('alert');
      await summary.getByText('Nothing was changed.').waitFor();
      assert.match(await page.title(), /^Error: Create a key/);
      assert.equal(await summary.evaluate((element) => element === document.activeElement), true);
      await summary.getByRole('link', { name: 'Choose a date in the future' }).press('Enter');
      const date = page.getByLabel('Expiry date');
      assert.equal(await date.evaluate((element) => element === document.activeElement), true);
      assert.equal(await date.getAttribute('aria-invalid'), 'true');
      assert.equal(await date.getAttribute('aria-describedby'), 'date-error date-hint');
    });
  }

  for (const path of FORMS) {
    it(`the way back and forward over the answer of ${path} leads to pages, and sends nothing again`, async () => {
      const page = await signIn('/docs/guides');
      await page.evaluate((action) => {
        const form = Object.assign(document.createElement('form'), { method: 'post', action });
        document.body.append(form);
        form.submit();
      }, path);
      await page.waitForFunction(() => !location.pathname.startsWith('/docs'));
      await page.waitForLoadState();
      // Only the script requests it.
      if ((await page.evaluate(() => document.contentType)) !== 'text/html') return;
      await watched.open('/docs');
      const sent: string[] = [];
      page.on('request', (request) => {
        if (request.method() !== 'GET') sent.push(request.url());
      });
      for (const go of [() => page.goBack(), () => page.goBack(), () => page.goForward(), () => page.reload()]) {
        const answer = await go();
        assert.ok(answer === null || answer.status() < 500, page.url());
        assert.equal(await page.locator('h1').count(), 1);
      }
      assert.deepEqual(sent, []);
    });
  }
});
