import assert from 'node:assert/strict';
import type { CDPSession, Page } from 'playwright-core';
import type { WatchedPage } from '../../support/programs/browser.js';
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

  beforeEach(async () => {
    watched = await stage.newProfile();
    ({ page } = watched);
    session = await page.context().newCDPSession(page);
    await session.send('WebAuthn.enable');
    await addAuthenticator();
    await signInQuietly(watched, stage.service, stage.developerId);
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

  async function createPasskey(): Promise<void> {
    await page.getByRole('button', { name: 'Create passkey' }).click();
    await page.getByText('The passkey has been added.').waitFor();
  }

  const signOut = async (): Promise<void> => {
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('link', { name: 'Sign in' }).click();
    await page.waitForURL('**/sign-in');
  };

  const signIn = (): Promise<void> => page.getByRole('button', { name: 'Sign in with a passkey' }).click();

  it('a developer adds a passkey, signs in with it, also again for a new key, and with a removed one reads what to do', async () => {
    await watched.open('/settings/passkeys');
    await page.getByText('You have no passkeys').waitFor();
    await page.getByRole('link', { name: 'Add a passkey' }).click();
    assert.equal(await page.getByLabel('Name').inputValue(), 'Chrome on Linux');
    await page.getByLabel('Name').fill('Laptop');
    await createPasskey();
    await page.getByRole('row', { name: 'Laptop' }).waitFor();
    await signOut();
    await signIn();
    await page.waitForURL('**/settings');

    const { db } = stage.service;
    await db('sessions').update({ signed_in_at: db.raw("now() - interval '16 minutes'") });
    await watched.open('/settings/keys/new');
    await page.getByText('sign in again: it has been more than 15 minutes').waitFor();
    await signIn();
    await page.waitForURL('**/settings/keys/new');
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByRole('heading', { name: 'Key created' }).waitFor();
    watched.assertNoFault();

    await watched.open('/settings/passkeys');
    await page.getByRole('link', { name: 'Remove passkey' }).click();
    await page.getByText('This is your only passkey').waitFor();
    await page.getByRole('button', { name: 'Remove passkey' }).click();
    await page.getByText('The passkey has been removed').waitFor();
    await signOut();
    await signIn();
    await page.getByText('This passkey was removed or belongs to another service.').waitFor();
    await assertFits(page);
    assert.match(await page.title(), /^Error: Sign in/);
  });

  it('what an authenticator refuses and the end of a session leave a form that can be sent again', async () => {
    await watched.open(NEW);
    await createPasskey();
    await page.goto(NEW);
    await page.getByRole('button', { name: 'Create passkey' }).click();
    await page.getByRole('alert').getByText('already has a passkey for your project').waitFor();
    await assertFits(page);
    assert.equal(await page.getByRole('alert').locator('p:visible').count(), 1);
    // A session that ends while the form is open leads to the sign-in page and back.
    await page.getByLabel('Name').fill('Security key');
    await stage.service.db('sessions').delete();
    await page.getByRole('button', { name: 'Create passkey' }).click();
    await page.waitForURL('**/sign-in');
    await signIn();
    await page.waitForURL(`**${NEW}*`);
    assert.equal(await page.getByLabel('Name').inputValue(), 'Security key');
    // Another device adds its own.
    await session.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId });
    await addAuthenticator();
    await createPasskey();
    assert.equal(await page.locator('tbody tr').count(), 2);
    await signOut();
    await session.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: false });
    await signIn();
    await page.getByRole('alert').getByText('You are not signed in').waitFor();
    await session.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: true });
    // As at another address of the service.
    await page.evaluate(() => {
      navigator.credentials.get = () => Promise.reject(new DOMException('', 'SecurityError'));
    });
    await signIn();
    await page.getByRole('alert').getByText(`Passkeys work only at ${stage.service.url}.`).waitFor();
    await page.reload();
    await signIn();
    await page.waitForURL('**/settings');
  });
}
