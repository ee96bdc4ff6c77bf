import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import type { Browser, Page } from 'playwright-core';
import { createSignInLink } from '../../src/accounts/sign-in-links.js';
import { signInOperator } from '../support/http/operator.js';
import { signIn, Visitor } from '../support/http/visitor.js';
import {
  assertAccessible,
  DARK_RULES,
  LOOKS,
  NARROW_RULES,
  resize,
  stopsFollowSizes,
  type WatchedPage,
} from '../support/programs/browser.js';
import type { TestService } from '../support/service.js';

/** The width that WCAG 2.2 requires, in CSS pixels: a screen of 1280 pixels at 400 % (success criterion 1.4.10). */
const NARROWEST = 320;

/** A screen of 1280 pixels at 200 %. */
const HALF = 640;

/** Gives a browser the cookies of somebody who has signed in without one. */
async function addCookies({ page }: WatchedPage, { cookies }: Visitor, url: string): Promise<void> {
  await page.context().addCookies([...cookies].map(([name, value]) => ({ name, value, url })));
}

/** Signs a developer in without opening a page. */
export async function signInQuietly(watched: WatchedPage, service: TestService, developerId: number): Promise<void> {
  const userAgent = await watched.page.evaluate(() => navigator.userAgent);
  const visitor = await signIn(service, developerId, new Visitor(service.url, { 'user-agent': userAgent }));
  await addCookies(watched, visitor, service.url);
}

/** The same for an operator. */
export async function signInOperatorQuietly(watched: WatchedPage, service: TestService): Promise<void> {
  await addCookies(watched, await signInOperator(service), service.operatorUrl ?? assert.fail('no operator pages'));
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

/** The elements that the tab key must reach. */
export const FOCUSABLE = 'a[href], button, input, select, textarea, summary, [tabindex="0"]';

/** The kinds of elements that a browser has shown. Elements of one kind look and act alike: all pages have one stylesheet. */
const seen = new WeakMap<Browser, Set<string>>();

/** What a page has that no earlier one had. */
export interface Novelty {
  /** Kinds of elements. */
  readonly kinds: readonly string[];
  /** Whether the tab key must reach one of them. */
  readonly isFocusable: boolean;
}

/** @returns the kinds of elements that the browser of a page has shown */
function kindsSeen(page: Page): Set<string> {
  const browser = page.context().browser() ?? assert.fail('the page has no browser');
  const kinds = seen.get(browser) ?? new Set();
  seen.set(browser, kinds);
  return kinds;
}

/**
 * In the page: its elements' kinds, which are their names, classes and parents. Of each new one the page keeps three
 * elements that have text, that the tab key reaches or that may scroll.
 */
function findNewKinds({
  part,
  known,
  focusable,
}: {
  part: string;
  known: readonly string[];
  focusable: string;
}): Novelty {
  const earlier = new Set(known);
  const found = new Map<string, number>();
  const newElements: Element[] = [];
  let isFocusable = false;
  for (const element of document.querySelectorAll(`${part} *:not(head, head *, svg *)`)) {
    const kind = [element.parentElement, element]
      .map((part) => [part?.localName, ...(part?.classList ?? [])].join('.'))
      .join(' > ');
    if (earlier.has(kind)) continue;
    const isStop = element.matches(focusable);
    const hasText = Array.from(element.childNodes).some((node) => node instanceof Text && node.data.trim() !== '');
    const count = found.get(kind) ?? 0;
    isFocusable ||= isStop;
    if (!isStop && !hasText && !element.matches('pre, .table-scroll')) {
      found.set(kind, count);
    } else {
      found.set(kind, count + 1);
      if (count < 3) newElements.push(element);
    }
  }
  Object.assign(globalThis, { newElements, checkedPart: [document.querySelector(part)] });
  return { kinds: [...found.keys()], isFocusable };
}

/**
 * Checks accessibility on a light, a dark and a narrow screen, and that the page does not scroll sideways there. Nothing is
 * checked where no kind of element is new. What may differ between elements of one kind, such as names and headings, is
 * checked in the HTML of every page.
 *
 * @param part - a selector of what is checked: all of the page by default
 * @param prepare - is called with what is new, before the page is changed
 */
export async function assertFits(
  page: Page,
  { part = 'html', prepare }: { part?: string; prepare?: (novelty: Novelty) => Promise<void> } = {},
): Promise<void> {
  const earlier = kindsSeen(page);
  const novelty = await page.evaluate(findNewKinds, { part, known: [...earlier], focusable: FOCUSABLE });
  if (novelty.kinds.length === 0) return;
  await prepare?.(novelty);
  await stopsFollowSizes(page);
  await assertAccessible(page, { elements: 'checkedPart' });
  await assertAccessible(page, { rules: LOOKS, elements: 'newElements' });
  await page.emulateMedia({ colorScheme: 'dark' });
  await assertAccessible(page, { rules: DARK_RULES, elements: 'newElements' });
  for (const width of [HALF, NARROWEST]) {
    await resize(page, { width, height: width });
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width, page.url());
  }
  await assertAccessible(page, { rules: NARROW_RULES, elements: 'newElements' });
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.emulateMedia({ colorScheme: 'light' });
  for (const kind of novelty.kinds) earlier.add(kind);
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
