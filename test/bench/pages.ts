import type { CDPSession, Page } from 'playwright-core';
import { PAGES, settingsPages } from '../site/pages.js';
import { createSampleDeveloper } from '../site/sample-developer.js';
import { signInByLink } from '../site/visits.js';
import { startBrowser } from '../support/programs/browser.js';
import { CHROMIUM, provideProgram } from '../support/programs/system-program.js';
import { startService } from '../support/service.js';
import { median, printResults } from './measure.js';

/** A slow phone connection, as Lighthouse simulates it: 1.6 Mbit/s down, 750 kbit/s up, 150 ms for a round trip. */
const SLOW_NETWORK = {
  offline: false,
  latency: 150,
  downloadThroughput: 1_600_000 / 8,
  uploadThroughput: 750_000 / 8,
};

/** How many times slower than this machine the phone is, as in Lighthouse. */
const CPU_SLOWDOWN = 4;

const SCREENS = { phone: { width: 390, height: 844 }, desktop: { width: 1280, height: 800 } };

/** The time to the first paint that the reference should stay below, in milliseconds. */
const FIRST_PAINT_GOAL_MS = 800;

/** What one visit of a page took. */
interface Visit {
  readonly firstPaintMs: number;
  readonly largestPaintMs: number;
  /** The cumulative layout shift. */
  readonly shift: number;
  readonly longTasksMs: number;
  readonly bytes: number;
  readonly requests: number;
}

/** Measures every page on a phone with a slow connection and an empty cache. @returns whether all goals were met */
export async function benchPages(visits: number): Promise<boolean> {
  const service = await startService();
  const browser = await startBrowser(provideProgram(CHROMIUM), service.url);
  try {
    const { developerId, prefix } = await createSampleDeveloper(service.db);
    const watched = await browser.newPage();
    await signInByLink(watched, service.db, developerId);
    const debug = await watched.page.context().newCDPSession(watched.page);
    await debug.send('Network.enable');
    await debug.send('Network.setCacheDisabled', { cacheDisabled: true });
    await debug.send('Network.emulateNetworkConditions', SLOW_NETWORK);
    await debug.send('Emulation.setCPUThrottlingRate', { rate: CPU_SLOWDOWN });
    const results = [];
    for (const path of [...PAGES, ...settingsPages(prefix)]) {
      const taken: Visit[] = [];
      await watched.page.setViewportSize(SCREENS.desktop);
      const { shift: desktopShift } = await visitPage(watched.page, debug, path);
      await watched.page.setViewportSize(SCREENS.phone);
      for (let visit = 0; visit < visits; visit += 1) taken.push(await visitPage(watched.page, debug, path));
      const of = (figure: keyof Visit): number => median(taken.map((visit) => visit[figure]));
      results.push({
        what: path,
        figures: [
          `${of('firstPaintMs').toFixed(0)} ms`,
          `${of('largestPaintMs').toFixed(0)} ms`,
          `${of('shift').toFixed(3)}, ${desktopShift.toFixed(3)}`,
          `${of('longTasksMs').toFixed(0)} ms`,
          `${(of('bytes') / 1000).toFixed(1)} kB`,
          String(of('requests')),
        ],
        goal: {
          text: `< ${FIRST_PAINT_GOAL_MS} ms, no shift`,
          isMet: of('firstPaintMs') < FIRST_PAINT_GOAL_MS && of('shift') + desktopShift === 0,
        },
      });
    }
    const headings = [
      'first paint',
      'largest paint',
      'shift, also on a desktop',
      'long tasks',
      'transferred',
      'requests',
    ];
    return printResults('Pages on a slow phone at 1.6 Mbit/s and 150 ms, with an empty cache', headings, results);
  } finally {
    await browser.close();
    await service.stop();
  }
}

async function visitPage(page: Page, debug: CDPSession, path: string): Promise<Visit> {
  let bytes = 0;
  let requests = 0;
  const onFinished = (event: { encodedDataLength: number }): void => {
    bytes += event.encodedDataLength;
    requests += 1;
  };
  debug.on('Network.loadingFinished', onFinished);
  await page.goto('about:blank');
  [bytes, requests] = [0, 0];
  await page.goto(path, { waitUntil: 'networkidle' });
  debug.off('Network.loadingFinished', onFinished);
  const paints = await page.evaluate(async () => {
    const [paint, largest, shifts, tasks] = await Promise.all(
      ['paint', 'largest-contentful-paint', 'layout-shift', 'longtask'].map(
        (type) =>
          new Promise<PerformanceEntry[]>((done) => {
            new PerformanceObserver((list) => {
              done(list.getEntries());
            }).observe({ type, buffered: true });
            // An observer of a type without entries is never called.
            setTimeout(() => {
              done([]);
            }, 200);
          }),
      ),
    );
    return {
      firstPaintMs: paint?.find(({ name }) => name === 'first-contentful-paint')?.startTime ?? NaN,
      largestPaintMs: largest?.at(-1)?.startTime ?? NaN,
      shift: (shifts ?? []).reduce((sum, entry) => sum + (entry as unknown as { value: number }).value, 0),
      longTasksMs: (tasks ?? []).reduce((sum, { duration }) => sum + duration, 0),
    };
  });
  return { ...paints, bytes, requests };
}
