import assert from 'node:assert/strict';
import type { CDPSession, Page } from 'playwright-core';
import { newDeveloper } from '../../support/http/visitor.js';
import type { TestBrowser, WatchedPage } from '../../support/programs/browser.js';
import { startService, type TestService } from '../../support/service.js';
import { assertFits, signInByLink } from '../visits.js';
import { testBrowser } from '../../support/http/test-browser.js';

/** An authenticator that Chromium has in place of the one of the machine. It is used without anybody touching it. */
interface VirtualAuthenticator {
  readonly session: CDPSession;
  readonly authenticatorId: string;
}

describe('passkeys in Chromium', () => {
  let service: TestService;
  let browser: TestBrowser;
  let developerId: number;
  const open: WatchedPage[] = [];

  const started = testBrowser({ settings: { HOST: 'localhost' } });
  before(async () => {
    ({ service, browser } = started());
    // Nobody waits for a virtual authenticator, so on a busy machine the first sign-in would take too long.
    await import('@simplewebauthn/server');
  });

  beforeEach(async () => (developerId = await newDeveloper(service)));
  afterEach(async () => {
    for (const watched of open.splice(0)) await watched.close();
  });

  /** Opens a browser profile of its own. */
  async function profile(javaScript = true): Promise<WatchedPage> {
    const watched = await browser.newPage({ javaScript });
    open.push(watched);
    return watched;
  }

  async function addAuthenticator(page: Page): Promise<VirtualAuthenticator> {
    const session = await page.context().newCDPSession(page);
    await session.send('WebAuthn.enable');
    const { authenticatorId } = await session.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        protocol: 'ctap2',
        transport: 'internal',
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
      },
    });
    return { session, authenticatorId };
  }

  /** Signs in by a link and adds a passkey. */
  async function withPasskey(): Promise<WatchedPage & { authenticator: VirtualAuthenticator }> {
    const watched = await profile();
    const { page } = watched;
    const authenticator = await addAuthenticator(page);
    await signInByLink(watched, service.db, developerId);
    await page.getByRole('link', { name: 'Add a passkey' }).click();
    await assertFits(page);
    await page.getByText('You have no passkeys').waitFor();
    await page.getByRole('link', { name: 'Add a passkey' }).click();
    assert.equal(await page.getByLabel('Name').inputValue(), 'Chrome on Linux');
    await assertFits(page);
    await page.getByLabel('Name').fill('Laptop');
    await page.getByRole('button', { name: 'Create passkey' }).click();
    await page.getByText('The passkey has been added.').waitFor();
    await page.getByRole('row', { name: 'Laptop' }).waitFor();
    await assertFits(page);
    return { ...watched, authenticator };
  }

  const signOut = async (page: Page): Promise<void> => {
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('link', { name: 'Sign in' }).click();
    await page.waitForURL('**/sign-in');
  };

  const signIn = (page: Page): Promise<void> => page.getByRole('button', { name: 'Sign in with a passkey' }).click();

  it('a developer adds a passkey, signs in with it, and with one that was removed reads what to do', async () => {
    const { page, assertNoFault } = await withPasskey();
    await signOut(page);
    await page.goto('/settings/passkeys');
    await assertFits(page);
    await signIn(page);
    await page.waitForURL('**/settings/passkeys');
    assert.equal(await page.getByRole('row', { name: 'Laptop' }).getByText('Never').count(), 0);
    assertNoFault();
    await page.getByRole('link', { name: 'Remove passkey' }).click();
    await page.getByText('This is your only passkey').waitFor();
    await assertFits(page);
    await page.getByRole('button', { name: 'Remove passkey' }).click();
    await page.getByText('The passkey has been removed').waitFor();
    await signOut(page);
    await signIn(page);
    await page.getByText('This passkey was removed or belongs to another service.').waitFor();
    await assertFits(page);
    assert.match(await page.title(), /^Error: Sign in/);
  });

  it('a passkey serves as the recent sign-in that creating a key needs, and leads back to the form', async () => {
    const { page, assertNoFault } = await withPasskey();
    await service.db('sessions').update({ signed_in_at: service.db.raw("now() - interval '16 minutes'") });
    await page.goto('/settings/keys/new');
    await page.getByText('require a sign-in within the last 15 minutes').waitFor();
    await assertFits(page);
    await signIn(page);
    await page.waitForURL('**/settings/keys/new');
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByRole('heading', { name: 'Key created' }).waitFor();
    assertNoFault();
  });

  it('a device adds one passkey for a project, and the form explains that', async () => {
    const { page } = await withPasskey();
    await page.goto('/settings/passkeys/new');
    await page.getByRole('button', { name: 'Create passkey' }).click();
    const problem = page.getByRole('alert').getByText('already has a passkey for your project');
    await problem.waitFor();
    await assertFits(page);
    assert.equal(await page.getByRole('alert').locator('p:visible').count(), 1);
    assert.equal(await page.getByRole('button', { name: 'Create passkey' }).isEnabled(), true);
  });

  it('somebody whom the authenticator cannot verify is not signed in, can try again, and reads why', async () => {
    const { page, authenticator } = await withPasskey();
    await signOut(page);
    const { session, authenticatorId } = authenticator;
    await session.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: false });
    await signIn(page);
    await page.getByRole('alert').getByText('You are not signed in').waitFor();
    await assertFits(page);
    await session.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: true });
    await signIn(page);
    await page.waitForURL('**/settings');
  });

  it('another browser has no passkey of the first one, and adds one of its own', async () => {
    await withPasskey();
    const { page } = await withPasskeyElsewhere();
    await page.goto('/settings/passkeys');
    assert.equal(await page.locator('tbody tr').count(), 2);
  });

  /** A second device of the same person. */
  async function withPasskeyElsewhere(): Promise<WatchedPage> {
    const watched = await profile();
    const { page } = watched;
    await addAuthenticator(page);
    await signInByLink(watched, service.db, developerId);
    await page.goto('/settings/passkeys/new');
    await page.getByRole('button', { name: 'Create passkey' }).click();
    await page.getByText('The passkey has been added.').waitFor();
    await signOut(page);
    await signIn(page);
    await page.waitForURL('**/settings');
    return watched;
  }

  it('a session that ends while the form is open leads to the sign-in page and back', async () => {
    const { page } = await withPasskey();
    await page.goto('/settings/passkeys/new');
    await page.getByLabel('Name').fill('Security key');
    await service.db('sessions').delete();
    await page.getByRole('button', { name: 'Create passkey' }).click();
    await page.waitForURL('**/sign-in');
    await signIn(page);
    await page.waitForURL('**/settings/passkeys/new*');
    assert.equal(await page.getByLabel('Name').inputValue(), 'Security key', 'the name comes back');
  });

  it('under another address of the service, a passkey is refused and the page names the right one', async () => {
    const other = await startService({
      databaseUrl: service.databaseUrl,
      settings: { PUBLIC_URL: 'http://localhost:1' },
    });
    try {
      const { page } = await profile();
      await page.goto(`${other.url}/sign-in`);
      await signIn(page);
      await page.getByRole('alert').getByText('Passkeys work only at http://localhost:1.').waitFor();
    } finally {
      await other.stop();
    }
  });

  it('without scripts, nothing that needs them is shown', async () => {
    const watched = await profile(false);
    const { page } = watched;
    await signInByLink(watched, service.db, developerId);
    await watched.open('/settings/passkeys/new');
    assert.match(await page.locator('noscript:visible').innerText(), /Passkeys need JavaScript/);
    assert.equal(await page.locator('[data-passkey]:visible').count(), 0);
    await watched.open('/sign-in');
    assert.equal(await page.locator('[data-passkey]:visible').count(), 0);
  });
});
