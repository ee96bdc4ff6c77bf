import assert from 'node:assert/strict';
import { suspendDeveloper } from '../../src/developers/developers.js';
import { Visitor, signIn } from '../support/http/visitor.js';
import { send } from '../support/request.js';
import { startService, type TestService } from '../support/service.js';
import { PAGES, settingsPages, UNKNOWN } from './pages.js';

const CONTACT = 'mailto:ops@catalog.example?subject=Catalog';

/** Opens every page, as an active and as a suspended developer, and provokes errors. @returns the HTML of each */
async function visitAll(service: TestService): Promise<string[]> {
  const { developerId, prefix } = await service.newKey();
  const visitor = await signIn(service, developerId);
  const open = (paths: readonly string[]): Promise<string[]> =>
    Promise.all(paths.map(async (path) => (await visitor.get(path)).text));
  const pages = await open([...PAGES, ...settingsPages(prefix)]);
  await suspendDeveloper(service.db, developerId);
  const link = await new Visitor(service.url).post('/sign-in/link', { token: UNKNOWN.token });
  return [...pages, ...(await open(['/', '/sign-in', ...settingsPages(prefix)])), link.text];
}

describe('the operator on the pages', () => {
  it('every page that mentions the operator links to OPERATOR_CONTACT', async () => {
    const service = await startService({ settings: { OPERATOR_CONTACT: CONTACT } });
    try {
      const pages = (await visitAll(service)).map((html) => html.replaceAll(/\s+/g, ' '));
      const links = pages.join('').split(`<a href="${CONTACT}">ops@catalog.example</a>`).length - 1;
      assert.ok(links >= 10, `${links} mentions`);
      for (const html of pages) assert.doesNotMatch(html, /operator of this service|your administrator/);
      assert.ok(pages.some((html) => html.includes(`href="${CONTACT}">Ask ops@catalog.example for a key</a>`)));
    } finally {
      await service.stop();
    }
  });

  it('without OPERATOR_CONTACT the pages mention an administrator, and the way to a key begins there', async () => {
    const service = await startService();
    try {
      const { text } = await send(service.url, '/', { headers: { accept: 'text/html' } });
      assert.ok(text.includes(' your administrator') && text.includes('href="#key">Get a key</a>'));
    } finally {
      await service.stop();
    }
  });
});
