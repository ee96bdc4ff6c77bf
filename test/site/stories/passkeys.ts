import assert from 'node:assert/strict';
import type { CDPSession, Page } from 'playwright-core';
import type { WatchedPage } from '../../support/programs/browser.js';
import { startService } from '../../support/service.js';
import { assertFits, signInQuietly } from '../visits.js';
import type { Stage } from './stage.js';

const NEW = '/settings/passkeys/new';

/** Stories of a developer who has passkeys. */
export function passkeyStories(stage: Stage): void {
  /** The page of a story, and its authenticator in place of the one of the machine. Nobody needs to touch it. */
  let watched: WatchedPage;
  let page: Page;
  let session: CDPSession;
  let authenticatorId: string;

  // Nobody waits for a virtual authenticator, so on a busy machine the first sign-in would take too long.
  before(() => import('@simplewebauthn/server'));

  beforeEach(async () => {
    watched = await stage.newProfile();
    ({ page } = watched);
    session = await page.context().newCDPSession(page);
    await session.send('WebAuthn.enable');
    await addAuthenticator();
  });

  async function addAuthenticator(): Promise<void> {
    ({ authenticatorId } = await session.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        protocol: 'ctap2',
        transport: 'internal',
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
      },
    }));
  }

  const signInByHttp = (): Promise<void> => signInQuietly(watched, stage.service, stage.developerId);

  /** Adds a passkey, signed in. */
  async function addPasskey(): Promise<void> {
    await signInByHttp();
    await watched.open(NEW);
    await page.getByRole('button', { name: 'Create passkey' }).click();
    await page.getByText('The passkey has been added.').waitFor();
  }

  const signOut = async (): Promise<void> => {
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('link', { name: 'Sign in' }).click();
    await page.waitForURL('**/sign-in');
  };

  const signIn = (): Promise<void> => page.getByRole('button', { name: 'Sign in with a passkey' }).click();

  it('a developer adds a passkey, signs in with it, and with one that was removed reads what to do', async () => {
    await signInByHttp();
    await watched.open('/settings/passkeys');
    await page.getByText('You have no passkeys').waitFor();
    await assertFits(page);
    await page.getByRole('link', { name: 'Add a passkey' }).click();
    assert.equal(await page.getByLabel('Name').inputValue(), 'Chrome on Linux');
    await page.getByLabel('Name').fill('Laptop');
    await page.getByRole('button', { name: 'Create passkey' }).click();
    await page.getByText('The passkey has been added.').waitFor();
    await page.getByRole('row', { name: 'Laptop' }).waitFor();
    await signOut();
    await page.goto('/settings/passkeys');
    await signIn();
    await page.waitForURL('**/settings/passkeys');
    assert.equal(await page.getByRole('row', { name: 'Laptop' }).getByText('Never').count(), 0);
    watched.assertNoFault();
    await page.getByRole('link', { name: 'Remove passkey' }).click();
    await page.getByText('This is your only passkey').waitFor();
    await assertFits(page);
    await page.getByRole('button', { name: 'Remove passkey' }).click();
    await page.getByText('The passkey has been removed').waitFor();
    await signOut();
    await signIn();
    await page.getByText('This passkey was removed or belongs to another service.').waitFor();
    await assertFits(page);
    assert.match(await page.title(), /^Error: Sign in/);
  });

  it('a passkey serves as the recent sign-in that creating a key needs, and leads back to the form', async () => {
    const { db } = stage.service;
    await addPasskey();
    await db('sessions').update({ signed_in_at: db.raw("now() - interval '16 minutes'") });
    await watched.open('/settings/keys/new');
    await page.getByText('require a sign-in within the last 15 minutes').waitFor();
    await assertFits(page);
    await signIn();
    await page.waitForURL('**/settings/keys/new');
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByRole('heading', { name: 'Key created' }).waitFor();
    watched.assertNoFault();
  });

  it('a device adds one passkey for a project, which the form explains, and another device adds its own', async () => {
    await addPasskey();
    await page.goto(NEW);
    await page.getByRole('button', { name: 'Create passkey' }).click();
    const problem = page.getByRole('alert').getByText('already has a passkey for your project');
    await problem.waitFor();
    await assertFits(page);
    assert.equal(await page.getByRole('alert').locator('p:visible').count(), 1);
    assert.equal(await page.getByRole('button', { name: 'Create passkey' }).isEnabled(), true);

    await session.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId });
    await addAuthenticator();
    await page.getByRole('button', { name: 'Create passkey' }).click();
    await page.getByText('The passkey has been added.').waitFor();
    assert.equal(await page.locator('tbody tr').count(), 2);
    await signOut();
    await signIn();
    await page.waitForURL('**/settings');
  });

  it('somebody whom the authenticator cannot verify is not signed in, can try again, and reads why', async () => {
    await addPasskey();
    await signOut();
    await session.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: false });
    await signIn();
    await page.getByRole('alert').getByText('You are not signed in').waitFor();
    await session.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: true });
    await signIn();
    await page.waitForURL('**/settings');
  });

  it('a session that ends while the form is open leads to the sign-in page and back', async () => {
    await addPasskey();
    await page.goto(NEW);
    await page.getByLabel('Name').fill('Security key');
    await stage.service.db('sessions').delete();
    await page.getByRole('button', { name: 'Create passkey' }).click();
    await page.waitForURL('**/sign-in');
    await signIn();
    await page.waitForURL(`**${NEW}*`);
    assert.equal(await page.getByLabel('Name').inputValue(), 'Security key', 'the name comes back');
  });

  it('under another address of the service, a passkey is refused and the page names the right one', async () => {
    const other = await startService({
      databaseUrl: stage.service.databaseUrl,
      settings: { PUBLIC_URL: 'http://localhost:1' },
    });
    try {
      await page.goto(`${other.url}/sign-in`);
      await signIn();
      await page.getByRole('alert').getByText('Passkeys work only at http://localhost:1.').waitFor();
    } finally {
      await other.stop();
    }
  });

  it('without scripts, nothing that needs them is shown', async () => {
    const scriptless = await stage.newProfile({ javaScript: false });
    await signInQuietly(scriptless, stage.service, stage.developerId);
    for (const path of [NEW, '/sign-in']) {
      await scriptless.open(path);
      assert.equal(await scriptless.page.locator('[data-passkey]:visible').count(), 0);
    }
    await scriptless.page.goto(NEW);
    assert.match(await scriptless.page.locator('noscript:visible').innerText(), /Passkeys need JavaScript/);
  });
}
