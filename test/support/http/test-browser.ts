import { startService, type TestService, type TestServiceOptions } from '../service.js';
import { startBrowser, type TestBrowser } from '../programs/browser.js';
import { skipWithout } from '../programs/skip.js';
import { CHROMIUM, findProgram } from '../programs/system-program.js';

/** The service, and Chromium in which its pages are opened. */
export interface BrowsedService {
  readonly service: TestService;
  readonly browser: TestBrowser;
}

/**
 * Starts the service and Chromium for a suite and stops them afterwards, by mocha's hooks. The suite is skipped where there is
 * no Chromium: mocha then runs none of its later hooks. Call it first thing in `describe`:
 *
 * ```ts
 * describe('a form in Chromium', () => {
 *   const start = testBrowser();
 *   before(() => ({ service, browser } = start()));
 * ```
 *
 * @returns a function that returns both, for hooks and tests
 */
export function testBrowser(options: TestServiceOptions = {}): () => BrowsedService {
  let started: BrowsedService | undefined;

  before(async function () {
    const program = findProgram(CHROMIUM) ?? skipWithout('Chromium', this);
    const service = await startService(options);
    started = { service, browser: await startBrowser(program, service.url) };
  });

  after(async () => {
    await started?.browser.close();
    await started?.service.stop();
  });

  return () => {
    if (started === undefined) throw new Error('the browser has not started yet');
    return started;
  };
}
