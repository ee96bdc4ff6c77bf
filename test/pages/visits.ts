import assert from 'node:assert/strict';
import type { Browser, Page } from 'playwright-core';
import { signInOperator } from '../support/http/operator.js';
import { signIn, Visitor } from '../support/http/visitor.js';
import {
  assertAccessible,
  DARK_RULES,
  LOOKS,
  NARROW_RULES,
  resize,
  type WatchedPage,
} from '../support/programs/browser.js';
import type { TestService } from '../support/service.js';

/** The width that WCAG 2.2 requires, in CSS pixels: a screen of 1280 pixels at 400 % (success criterion 1.4.10). */
const NARROWEST = 320;

/** Too wide for cards, and too narrow for the widest tables. */
const TABLET = 800;

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

/** The elements that the tab key must reach. */
export const FOCUSABLE = 'a[href], button, input, select, textarea, summary, [tabindex="0"]';

/** The kinds of elements that a browser has shown. Those of one kind look and act alike: pages share one stylesheet. */
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
 * In the page: leaves three of adjacent parts, and parts that have something new or that others need. axe looks at each
 * element, and there are hundreds of the same kind.
 */
function removeRepeated(): void {
  const { newElements } = globalThis as unknown as { readonly newElements: readonly Element[] };
  for (const parent of document.querySelectorAll('ul, ol, tbody, section, div')) {
    for (const child of Array.from(parent.children).slice(3)) {
      const isNeeded = child.matches('h1, label, :has(h1)') || newElements.some((element) => child.contains(element));
      if (!isNeeded) child.remove();
    }
  }
}

/**
 * Checks accessibility on a light, a dark and a narrow screen, and that the page does not scroll sideways there.
 * Nothing is checked where no kind of element is new. What may differ between elements of one kind, such as names and
 * headings, is checked in the HTML of every page.
 *
 * @param part - a selector of what is checked: all of the page by default
 * @param prepare - is called with what is new, once much else of the page is gone
 */
export async function assertFits(
  page: Page,
  { part = 'html', prepare }: { part?: string; prepare?: (novelty: Novelty) => Promise<void> } = {},
): Promise<void> {
  const earlier = kindsSeen(page);
  const novelty = await page.evaluate(findNewKinds, { part, known: [...earlier], focusable: FOCUSABLE });
  if (novelty.kinds.length === 0) return;
  for (const width of [TABLET, NARROWEST]) {
    await resize(page, { width, height: NARROWEST });
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width, page.url());
  }
  await assertAccessible(page, { rules: NARROW_RULES, elements: 'newElements' });
  await resize(page, { width: 1280, height: 800 });
  if (prepare !== undefined) {
    await page.evaluate(removeRepeated);
    await prepare(novelty);
  }
  await assertAccessible(page, { elements: 'checkedPart' });
  await assertAccessible(page, { rules: LOOKS, elements: 'newElements' });
  await page.emulateMedia({ colorScheme: 'dark' });
  await assertAccessible(page, { rules: DARK_RULES, elements: 'newElements' });
  await page.emulateMedia({ colorScheme: 'light' });
  for (const kind of novelty.kinds) earlier.add(kind);
}
