import { mkdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { createSignInLink } from '../../src/accounts/sign-in-links.js';
import { prepareDemo } from '../../src/commands/demo/prepare-demo.js';
import { startBrowser } from '../support/programs/browser.js';
import { ROOT } from '../support/guides.js';
import { startService } from '../support/service.js';
import { CHROMIUM, provideProgram } from '../support/programs/system-program.js';
import { PAGES } from './pages.js';
import { createSampleDeveloper } from './sample-developer.js';

// Takes a picture of each page, or of those that ONLY matches, light and dark, on a wide and on a narrow screen, into
// .cache/screenshots. Also the picture that the README shows.

const FOLDER = fileURLToPath(new URL('.cache/screenshots', ROOT));

/** Pages behind sign-in. */
const SETTINGS = [
  '/settings',
  '/settings/keys',
  '/settings/keys/new',
  '/settings/usage',
  '/settings/events',
  '/settings/sessions',
];

/** The page that the README shows, and its picture. */
const SHOWN = { path: '/settings/keys', file: fileURLToPath(new URL('src/site/guides/settings.png', ROOT)) };

const SCREENS = { desktop: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } };

const program = provideProgram(CHROMIUM);
const service = await startService();
await service.db('api_keys').delete();
await service.db('developers').delete();
await prepareDemo(service.db, fileURLToPath(ROOT).replace(/\/$/, ''));
const developerId = await createSampleDeveloper(service.db);
const browser = await startBrowser(program, service.url);
await mkdir(FOLDER, { recursive: true });
try {
  for (const [screen, size] of Object.entries(SCREENS)) {
    for (const colorScheme of ['light', 'dark'] as const) {
      const { page, open, close } = await browser.newPage({ ...size, colorScheme });
      await open(`/sign-in/link/${await createSignInLink(service.db, developerId)}`);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.waitForURL('**/settings');
      for (const path of [...PAGES, ...SETTINGS].filter((each) => each.includes(process.env.ONLY ?? ''))) {
        await open(path);
        const name = path === '/' ? 'overview' : path.slice(1).replaceAll('/', '-');
        const file = `${FOLDER}/${name}-${screen}-${colorScheme}.png`;
        await page.screenshot({ path: file, fullPage: process.env.FULL !== 'no' });
        process.stdout.write(`${file}\n`);
        if (path === SHOWN.path && screen === 'desktop' && colorScheme === 'light') {
          await page.screenshot({ path: SHOWN.file });
          process.stdout.write(`${SHOWN.file}\n`);
        }
      }
      await close();
    }
  }
} finally {
  await browser.close();
  await service.stop();
}
