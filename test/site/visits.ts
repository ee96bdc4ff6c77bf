import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import type { Page } from 'playwright-core';
import { createSignInLink } from '../../src/accounts/sign-in-links.js';
import { assertAccessible, DARK_RULES, NARROW_RULES, resize, type WatchedPage } from '../support/programs/browser.js';

/** The width that WCAG 2.2 requires, in CSS pixels (success criterion 1.4.10). */
const NARROWEST = 320;

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

/** Checks accessibility on a light, a dark and a narrow screen, and that the page does not scroll sideways there. */
export async function assertFits(page: Page): Promise<void> {
  await assertAccessible(page);
  await page.emulateMedia({ colorScheme: 'dark' });
  await assertAccessible(page, DARK_RULES);
  await resize(page, { width: NARROWEST, height: 640 });
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), NARROWEST, page.url());
  await assertAccessible(page, NARROW_RULES);
  await resize(page, { width: 1280, height: 800 });
  await page.emulateMedia({ colorScheme: 'light' });
}
