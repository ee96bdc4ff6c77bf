import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { linkIdentity } from '../../../src/accounts/identities.js';
import { listDevelopers } from '../../../src/developers/developers.js';
import { newDeveloper } from '../../support/http/visitor.js';
import {
  assertAccessible,
  resize,
  startBrowser,
  type TestBrowser,
  type View,
  type WatchedPage,
} from '../../support/programs/browser.js';
import type { IdentityProvider } from '../../support/programs/identity-provider.js';
import { skipWithout } from '../../support/programs/skip.js';
import { CHROMIUM, findProgram } from '../../support/programs/system-program.js';
import type { TestService } from '../../support/service.js';
import { startWithProvider } from './oidc-service.js';

/** The width that WCAG 2.2 asks for, in CSS pixels (success criterion 1.4.10). */
const NARROWEST = 320;

/** As long as a subject of OpenID Connect may be. */
const LONGEST_SUBJECT = 'auth0|'.padEnd(255, '0123456789abcdef');

for (const signUp of ['on', 'off'] as const) {
  describe(`signing in by OpenID Connect in Chromium, with OIDC_SIGN_UP=${signUp}`, () => {
    let service: TestService;
    let provider: IdentityProvider;
    let browser: TestBrowser;
    let watched: WatchedPage;
    let identities = 0;

    before(async function () {
      const program = findProgram(CHROMIUM) ?? skipWithout('Chromium', this);
      ({ service, provider } = await startWithProvider(signUp));
      browser = await startBrowser(program, service.url);
    });

    after(async () => {
      // Undefined where the tests were skipped.
      await (browser as TestBrowser | undefined)?.close();
      await (service as TestService | undefined)?.stop();
      await (provider as IdentityProvider | undefined)?.stop();
    });

    beforeEach(() => {
      provider.subject = `person-${(identities += 1)}`;
    });

    afterEach(() => watched.close());

    /** Goes to the provider and comes back. @param path - of the service, to which the person wanted to go */
    async function signIn(view: View = {}, path = '/settings'): Promise<Page> {
      watched = await browser.newPage(view);
      await watched.open(path);
      await goToProvider(watched.page);
      return watched.page;
    }

    async function goToProvider(page: Page): Promise<void> {
      await page.getByRole('link', { name: `Sign in with ${new URL(provider.issuer).host}` }).click();
    }

    async function assertFits(page: Page): Promise<void> {
      await assertAccessible(page);
      await page.emulateMedia({ colorScheme: 'dark' });
      await assertAccessible(page, ['color-contrast']);
      await resize(page, { width: NARROWEST, height: 640 });
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), NARROWEST, page.url());
      await assertAccessible(page, ['target-size', 'scrollable-region-focusable']);
    }

    if (signUp === 'on') {
      for (const javaScript of [true, false]) {
        it(`makes a stranger a developer who comes back later, ${javaScript ? 'with' : 'without'} scripts`, async () => {
          const page = await signIn({ javaScript }, '/settings/keys');
          await page.waitForURL('**/sign-up');
          assert.equal(await watched.open('/sign-up'), 200);
          watched.assertNoFault();
          await page.getByLabel('Project name').fill('Film club');
          await page.getByRole('button', { name: 'Create the project' }).click();
          // The page that was wanted first.
          await page.waitForURL('**/settings/keys');
          await page.getByText('Film club').waitFor();
          assert.equal((await listDevelopers(service.db)).at(-1)?.planId, 'free');

          await page.getByRole('button', { name: 'Sign out' }).click();
          await page.waitForURL('**/sign-in');
          await goToProvider(page);
          await page.waitForURL('**/settings');
          assert.equal(await watched.open('/settings'), 200);
          await page.getByText('Film club').first().waitFor();
          watched.assertNoFault();
        });
      }

      it('shows a form that is accessible and fits a narrow screen, light and dark, also with an error', async () => {
        const page = await signIn();
        await page.waitForURL('**/sign-up');
        await assertFits(page);
        await page.getByLabel('Project name').fill('   ');
        await page.getByRole('button', { name: 'Create the project' }).click();
        await page.getByText('Give your project a name of 1 to 200 characters.').waitFor();
        assert.equal(await page.getByLabel('Project name').getAttribute('aria-invalid'), 'true');
        await assertFits(page);
      });
    } else {
      for (const javaScript of [true, false]) {
        it(`shows a stranger what to send to the operator, and lets the person in once linked, ${javaScript ? 'with' : 'without'} scripts`, async () => {
          const page = await signIn({ javaScript });
          await page.getByRole('heading', { name: 'You are not known here yet' }).waitFor();
          const shown = await page.locator('.code-block').first().innerText();
          const [, issuer = '', subject = ''] = /Issuer: +(\S+)\s+Subject: +(\S+)/.exec(shown) ?? assert.fail(shown);
          assert.deepEqual([issuer, subject], [provider.issuer, provider.subject]);
          const developerId = await newDeveloper(service, 'Book club');
          await linkIdentity(service.db, developerId, { issuer, subject });
          await page.getByRole('link', { name: 'Sign in again' }).click();
          await goToProvider(page);
          await page.waitForURL('**/settings');
          await page.getByText('Book club').first().waitFor();
        });
      }

      it('shows that page accessibly and without scrolling on a narrow screen, light and dark, for the longest subject', async () => {
        provider.subject = LONGEST_SUBJECT;
        const page = await signIn();
        await page.getByText(LONGEST_SUBJECT).first().waitFor();
        await assertFits(page);
      });
    }
  });
}
