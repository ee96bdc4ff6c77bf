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

/** A service, its provider, and a person at a browser. */
class Stage {
  #watched: WatchedPage | undefined;
  #persons = 0;

  private constructor(
    readonly service: TestService,
    readonly provider: IdentityProvider,
    private readonly browser: TestBrowser,
  ) {}

  /** @param program - Chromium @param signUp - whether an unknown identity may sign up */
  static async set(program: string, signUp: 'on' | 'off'): Promise<Stage> {
    const { service, provider } = await startWithProvider(signUp);
    return new Stage(service, provider, await startBrowser(program, service.url));
  }

  /** The page of the person. */
  get watched(): WatchedPage {
    return this.#watched ?? assert.fail('nobody is there');
  }

  /**
   * Lets a person whom nobody knows sign in at the provider, and come back.
   *
   * @param path - the page that the person wants
   * @param subject - who it is; somebody new where it is left out
   */
  async signIn(view: View = {}, path = '/settings', subject = `person-${(this.#persons += 1)}`): Promise<Page> {
    this.provider.subject = subject;
    this.#watched = await this.browser.newPage(view);
    const { page, open } = this.#watched;
    await open(path);
    await this.goToProvider(page);
    return page;
  }

  async goToProvider(page: Page): Promise<void> {
    await page.getByRole('link', { name: `Sign in with ${new URL(this.provider.issuer).host}` }).click();
  }

  async leave(): Promise<void> {
    await this.#watched?.close();
  }

  async close(): Promise<void> {
    await this.browser.close();
    await this.service.stop();
    await this.provider.stop();
  }
}

/** Holds a page against what axe-core finds, light and dark, and against the narrowest screen. */
async function assertFits(page: Page): Promise<void> {
  await assertAccessible(page);
  await page.emulateMedia({ colorScheme: 'dark' });
  await assertAccessible(page, ['color-contrast']);
  await resize(page, { width: NARROWEST, height: 640 });
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), NARROWEST, page.url());
  await assertAccessible(page, ['target-size', 'scrollable-region-focusable']);
}

describe('signing up by OpenID Connect in Chromium', () => {
  let stage: Stage;

  before(async function () {
    stage = await Stage.set(findProgram(CHROMIUM) ?? skipWithout('Chromium', this), 'on');
  });

  // Undefined where the tests were skipped.
  after(() => (stage as Stage | undefined)?.close());

  afterEach(() => stage.leave());

  for (const javaScript of [true, false]) {
    it(`makes a stranger a developer who comes back later, ${javaScript ? 'with' : 'without'} scripts`, async () => {
      const page = await stage.signIn({ javaScript }, '/settings/keys');
      const { open, assertNoFault } = stage.watched;
      await page.waitForURL('**/sign-up');
      assert.equal(await open('/sign-up'), 200);
      assertNoFault();
      await page.getByLabel('Project name').fill('Film club');
      await page.getByRole('button', { name: 'Create project' }).click();
      // The page that was wanted first.
      await page.waitForURL('**/settings/keys');
      await page.getByText('Film club').waitFor();
      assert.equal((await listDevelopers(stage.service.db)).at(-1)?.planId, 'free');

      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.waitForURL('**/sign-in');
      await stage.goToProvider(page);
      await page.waitForURL('**/settings');
      assert.equal(await open('/settings'), 200);
      await page.getByText('Film club').first().waitFor();
      assertNoFault();
    });
  }

  it('shows a form that is accessible and fits a narrow screen, light and dark, also with an error', async () => {
    const page = await stage.signIn();
    await page.waitForURL('**/sign-up');
    await assertFits(page);
    await page.getByLabel('Project name').fill('   ');
    await page.getByRole('button', { name: 'Create project' }).click();
    await page.getByText('Enter a name of 1 to 200 characters').waitFor();
    assert.equal(await page.getByLabel('Project name').getAttribute('aria-invalid'), 'true');
    await assertFits(page);
  });
});

describe('signing in by OpenID Connect in Chromium, where nobody may sign up', () => {
  let stage: Stage;

  before(async function () {
    stage = await Stage.set(findProgram(CHROMIUM) ?? skipWithout('Chromium', this), 'off');
  });

  // Undefined where the tests were skipped.
  after(() => (stage as Stage | undefined)?.close());

  afterEach(() => stage.leave());

  for (const javaScript of [true, false]) {
    it(`tells a stranger what to send to the operator, and lets the person in once linked, ${javaScript ? 'with' : 'without'} scripts`, async () => {
      const page = await stage.signIn({ javaScript });
      const { service, provider } = stage;
      await page.getByRole('heading', { name: 'Your identity is not linked yet' }).waitFor();
      const shown = await page.locator('.code-block').first().innerText();
      const [, issuer = '', subject = ''] = /Issuer: +(\S+)\s+Subject: +(\S+)/.exec(shown) ?? assert.fail(shown);
      assert.deepEqual([issuer, subject], [provider.issuer, provider.subject]);
      const developerId = await newDeveloper(service, 'Book club');
      await linkIdentity(service.db, developerId, { issuer, subject });
      await page.getByRole('link', { name: 'Sign in again' }).click();
      await stage.goToProvider(page);
      await page.waitForURL('**/settings');
      await page.getByText('Book club').first().waitFor();
    });
  }

  it('shows that page accessibly and without scrolling on a narrow screen, light and dark, for the longest subject', async () => {
    const page = await stage.signIn({}, '/settings', LONGEST_SUBJECT);
    await page.getByText(LONGEST_SUBJECT).first().waitFor();
    await assertFits(page);
  });
});
