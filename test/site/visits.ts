import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import type { Page } from 'playwright-core';
import { createOperatorLink } from '../../src/accounts/operator-sign-in-links.js';
import { createSignInLink } from '../../src/accounts/sign-in-links.js';
import { signIn, Visitor } from '../support/http/visitor.js';
import { assertAccessible, DARK_RULES, NARROW_RULES, resize, type WatchedPage } from '../support/programs/browser.js';
import type { TestService } from '../support/service.js';

/** The width that WCAG 2.2 requires, in CSS pixels: a screen of 1280 pixels at 400 % (success criterion 1.4.10). */
const NARROWEST = 320;

/** A screen of 1280 pixels at 200 %. */
const HALF = 640;

/** Signs a developer in without opening a page. */
export async function signInQuietly({ page }: WatchedPage, service: TestService, developerId: number): Promise<void> {
  const userAgent = await page.evaluate(() => navigator.userAgent);
  const { cookies } = await signIn(service, developerId, new Visitor(service.url, { 'user-agent': userAgent }));
  await page.context().addCookies([...cookies].map(([name, value]) => ({ name, value, url: service.url })));
}

/** Signs a developer in by a link. @param then - the address that the sign-in leads to */
export async function signInByLink(
  { page, open }: WatchedPage,
  db: Knex,
  developerId: number,
  then = '**/settings',
): Promise<void> {
  await open(`/sign-in/link/${await createSignInLink(db, developerId)}`);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForURL(then);
}

/** Signs an operator in by a link. */
export async function signInOperatorByLink({ page, open }: WatchedPage, db: Knex): Promise<void> {
  await open(`/sign-in/${await createOperatorLink(db)}`);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForURL('**/');
}

/** Checks accessibility on a light, a dark and a narrow screen, and that the page does not scroll sideways there. */
export async function assertFits(page: Page): Promise<void> {
  await assertAccessible(page);
  await page.emulateMedia({ colorScheme: 'dark' });
  await assertAccessible(page, DARK_RULES);
  for (const width of [HALF, NARROWEST]) {
    await resize(page, { width, height: width });
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width, page.url());
  }
  await assertAccessible(page, NARROW_RULES);
  await resize(page, { width: 1280, height: 800 });
  await page.emulateMedia({ colorScheme: 'light' });
}

/**
 * Checks that a page is printed without its navigation and forms, unfolded and in light colours, whatever colours the screen
 * has.
 */
export async function assertPrints(page: Page): Promise<void> {
  await page.emulateMedia({ colorScheme: 'dark', media: 'print' });
  await page.evaluate(() => {
    document.querySelectorAll('details').forEach((details) => (details.open = false));
  });
  const printed = await page.evaluate(() => ({
    frame: Array.from(document.querySelectorAll('header.site-header, footer.site-footer, nav, main form, .try')).filter(
      (part) => part.checkVisibility(),
    ).length,
    folded: Array.from(document.querySelectorAll('main details > :not(summary)')).filter(
      (part) => part.closest('nav, .try') === null && !part.checkVisibility(),
    ).length,
    background: getComputedStyle(document.body).backgroundColor,
    // The components of a colour: https://www.w3.org/TR/css-color-4/#serializing-sRGB-values
    ink: Math.max(...(getComputedStyle(document.body).color.match(/\d+/g) ?? []).map(Number)),
  }));
  await page.emulateMedia({ colorScheme: 'light', media: 'screen' });
  assert.deepEqual(
    { ...printed, ink: printed.ink < 80 },
    { frame: 0, folded: 0, background: 'rgb(255, 255, 255)', ink: true },
  );
}
