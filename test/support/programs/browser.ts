import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type Axe from 'axe-core';
import type { RunOptions } from 'axe-core';
import { chromium, type Page } from 'playwright-core';
import { eventually, GIVE_UP_MS } from '../eventually.js';

/** How a page is looked at. */
export interface View {
  readonly colorScheme?: 'light' | 'dark';
  /** In CSS pixels; a wide screen where it is left out. */
  readonly width?: number;
  readonly height?: number;
  /** False for a browser without scripts. */
  readonly javaScript?: boolean;
  /** Another origin than the one that the browser was started for. */
  readonly origin?: string | undefined;
}

/** A page in a browser profile of its own, which is watched for faults. */
export interface WatchedPage {
  readonly page: Page;
  /** Opens a path of the service, and forgets the faults of the page before. @returns the status of the answer */
  readonly open: (path: string) => Promise<number>;
  /** Fails where the page has reported an error, broken its content security policy or asked another origin. */
  readonly assertNoFault: () => void;
  readonly close: () => Promise<void>;
}

/** Chromium, which runs. */
export interface TestBrowser {
  newPage(view?: View): Promise<WatchedPage>;
  close(): Promise<void>;
}

/**
 * Starts Chromium without a window.
 *
 * @param program - its path
 * @param ownOrigin - of the service; a request that leaves it is a fault
 */
export async function startBrowser(program: string, ownOrigin: string): Promise<TestBrowser> {
  const browser = await chromium.launch({
    executablePath: program,
    // Chromium refuses its sandbox to root.
    args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
    timeout: GIVE_UP_MS,
  });

  async function newPage(view: View = {}): Promise<WatchedPage> {
    const { colorScheme = 'light', width = 1280, height = 800, javaScript = true, origin = ownOrigin } = view;
    const context = await browser.newContext({
      baseURL: origin,
      colorScheme,
      viewport: { width, height },
      javaScriptEnabled: javaScript,
      permissions: ['clipboard-read', 'clipboard-write'],
      reducedMotion: 'reduce',
    });
    context.setDefaultTimeout(GIVE_UP_MS);
    const page = await context.newPage();
    const faults: string[] = [];
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) faults.push(`${message.type()}: ${message.text()}`);
    });
    page.on('pageerror', (error) => faults.push(`uncaught: ${error.message}`));
    page.on('requestfailed', (request) => {
      // The browser gives up by itself what a page asked for that it leaves.
      if (request.failure()?.errorText !== 'net::ERR_ABORTED') faults.push(`failed: ${request.url()}`);
    });
    page.on('request', (request) => {
      if (new URL(request.url()).origin !== origin) faults.push(`left the origin: ${request.url()}`);
    });
    return {
      page,
      async open(path) {
        faults.length = 0;
        const status = (await page.goto(path))?.status() ?? assert.fail(`no answer: ${path}`);
        if (javaScript) await stopsFollowSizes(page);
        return status;
      },
      assertNoFault() {
        assert.deepEqual(faults, []);
      },
      close: () => context.close(),
    };
  }

  return { newPage, close: () => browser.close() };
}

/** Makes the screen of a page another size, and waits until its script has seen it. */
export async function resize(page: Page, size: { readonly width: number; readonly height: number }): Promise<void> {
  await page.setViewportSize(size);
  await stopsFollowSizes(page);
}

/** The script of a page sees sizes a little later than the page has them: only then are boxes that scroll tab stops. */
async function stopsFollowSizes(page: Page): Promise<void> {
  await eventually('the boxes that scroll, and no other, are stops', () =>
    page.evaluate(() =>
      Array.from(document.querySelectorAll<HTMLElement>('pre[tabindex], .table-scroll'))
        .filter((box) => box.checkVisibility({ contentVisibilityAuto: true }))
        .every((box) => {
          const scrolls = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight;
          return scrolls === (box.tabIndex === 0);
        }),
    ),
  );
}

/** Leaves a page that a browser keeps for the way back. This browser keeps none, so the page only gets the event. */
export async function leaveKept(page: Page): Promise<void> {
  await page.evaluate(() => window.dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true })));
}

/** The rules of WCAG 2.2 at the levels A and AA, and axe's own best practices. */
const ALL_RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

/** Rules about looks, which take axe four fifths of its time. */
export const LOOKS = ['color-contrast', 'target-size', 'link-in-text-block'];

/** The rules that a dark screen may break where a light one does not. */
export const DARK_RULES = ['color-contrast'];

/** The rules that a narrow screen may break where a wide one does not. */
export const NARROW_RULES = ['target-size', 'scrollable-region-focusable'];

/** A script for the browser, minified: it is sent for each page that is checked, unless the page has it. */
export const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What of a page {@link assertAccessible} checks. */
interface Accessibility {
  /** By default all of them but {@link LOOKS}. */
  readonly rules?: readonly string[];
  /** The elements, with what they contain: a list that the page has under this name. */
  readonly elements: string;
}

/** Holds the page that is shown against WCAG 2.2 AA, as far as axe-core can. */
export async function assertAccessible(page: Page, { rules, elements }: Accessibility): Promise<void> {
  // Through the debugger, which the content security policy of the page does not bind.
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(AXE);
  // Only what is wrong leaves the page: to describe each node that passes takes axe most of its time.
  const options: RunOptions = {
    runOnly: rules === undefined ? { type: 'tag', values: ALL_RULES } : { type: 'rule', values: [...rules] },
    rules: Object.fromEntries(rules === undefined ? LOOKS.map((rule) => [rule, { enabled: false }]) : []),
    resultTypes: ['violations'],
    selectors: false,
    // Styles of other origins, which no page has.
    preload: false,
  };
  const violations = await page.evaluate(
    async ({ options, elements }) => {
      const page = globalThis as unknown as { axe: typeof Axe } & Record<string, Element[] | undefined>;
      const include = page[elements] ?? [];
      if (include.length === 0) return [];
      const { violations } = await page.axe.run({ include }, options);
      return violations.flatMap(({ id, help, nodes }) => nodes.map(({ html }) => `${id} (${help}): ${html}`));
    },
    { options, elements },
  );
  assert.deepEqual(violations, []);
}
