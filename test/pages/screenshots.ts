import { mkdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { createKey } from '../../src/keys/keys.js';
import { startBrowser, type TestBrowser, type WatchedPage } from '../support/programs/browser.js';
import { ROOT } from '../support/guides.js';
import { startDemoService } from '../support/catalog/demo-service.js';
import type { TestService } from '../support/service.js';
import { CHROMIUM, provideProgram } from '../support/programs/system-program.js';
import { operatorPages, PAGES, settingsPages } from './pages.js';
import { createSampleDeveloper } from './sample-developer.js';
import { signInOperatorQuietly, signInQuietly } from './visits.js';

// Takes pictures of each page, or of the pages whose path contains ONLY, into .cache/screenshots. Each is light and
// dark, on a wide and on a narrow screen. With README=1 it also takes the picture that the README shows.

const FOLDER = fileURLToPath(new URL('.cache/screenshots', ROOT));

/** The page that the README shows, and its picture. */
const SHOWN = {
  path: '/settings/keys',
  file: fileURLToPath(new URL('src/pages/public/guides/pictures/settings.png', ROOT)),
};

const SCREENS = { desktop: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } };

/** Of 60 that the plan allows in a minute. */
const CALLS = 50;

const program = provideProgram(CHROMIUM);
const { ONLY = '', FULL, README } = process.env;

/** Calls back for each screen and color scheme, with what names its pictures. */
async function onEachScreen(
  browser: TestBrowser,
  show: (watched: WatchedPage, kind: string) => Promise<void>,
): Promise<void> {
  for (const [screen, size] of Object.entries(SCREENS)) {
    for (const colorScheme of ['light', 'dark'] as const) {
      const watched = await browser.newPage({ ...size, colorScheme });
      await show(watched, `${screen}-${colorScheme}`);
      await watched.close();
    }
  }
}

async function takePicture(page: Page, file: string, fullPage = FULL !== 'no'): Promise<void> {
  await page.screenshot({ path: file, fullPage });
  process.stdout.write(`${file}\n`);
}

/** Calls the API as often as a meter shows, by a key that is deleted again. */
async function useMostOfAMinute(service: TestService, developerId: number): Promise<void> {
  const { db } = service;
  const { key, prefix } = await createKey(db, { developerId, planId: 'free' });
  for (let call = 0; call < CALLS; call += 1) await service.get('/api/v1/me', { headers: { 'x-api-key': key } });
  await db('events').where({ key_prefix: prefix }).delete();
  await db('api_keys').where({ prefix }).delete();
}

async function showPages(): Promise<void> {
  // Passkeys need a host name.
  const { service } = await startDemoService({ settings: { HOST: 'localhost', METRICS_ADDRESS: '127.0.0.1:0' } });
  const browser = await startBrowser(program, service.url);
  try {
    const { developerId, prefix } = await createSampleDeveloper(service.db);
    await useMostOfAMinute(service, developerId);
    await onEachScreen(browser, async (watched, kind) => {
      const { page, open } = watched;
      await signInQuietly(watched, service, developerId);
      await signInOperatorQuietly(watched, service);
      for (const path of [...PAGES, ...settingsPages(prefix)].filter((each) => each.includes(ONLY))) {
        await open(path);
        const name = path === '/' ? 'overview' : path.slice(1).replaceAll('/', '-');
        await takePicture(page, `${FOLDER}/${name}-${kind}.png`);
        if (README === '1' && path === SHOWN.path && kind === 'desktop-light')
          await takePicture(page, SHOWN.file, false);
      }
      for (const path of operatorPages({ id: String(developerId), prefix }).filter((each) =>
        `/operator${each}`.includes(ONLY),
      )) {
        await open(`${service.operatorUrl}${path}`);
        await takePicture(page, `${FOLDER}/operator${path.replace(/\/$/, '').replaceAll('/', '-')}-${kind}.png`);
      }
    });
  } finally {
    await browser.close();
    await service.stop();
  }
}

await mkdir(FOLDER, { recursive: true });
await showPages();
