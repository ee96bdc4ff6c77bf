import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { listDevelopers } from '../../../src/developers/developers.js';
import type { IdentityProvider } from '../../support/pages/identity-provider.js';
import { assertFits } from '../visits.js';
import type { Stage } from './stage.js';

/** Stories of somebody who signs in at the identity provider. */
export function providerStories(stage: Stage): void {
  async function goToProvider(page: Page, { issuer }: IdentityProvider): Promise<void> {
    await page.getByRole('link', { name: `Sign in with ${new URL(issuer).host}` }).click();
  }

  it('a stranger names a project, reaches the page that was requested first, signs out, and signs in again', async () => {
    const { service, provider } = stage;
    provider.subject = 'stranger';
    const { page } = await stage.visit('/settings/keys');
    await goToProvider(page, provider);
    await page.waitForURL('**/sign-up');
    await page.getByLabel('Project name').fill('   ');
    await page.getByRole('button', { name: 'Create project' }).click();
    await page.getByRole('alert').getByText('Enter a name of 1 to 200 characters').waitFor();
    assert.equal(await page.getByLabel('Project name').getAttribute('aria-invalid'), 'true');
    await assertFits(page);
    await page.getByLabel('Project name').fill('Film club');
    await page.getByRole('button', { name: 'Create project' }).click();
    await page.waitForURL('**/settings/keys');
    await page.getByText('Film club').waitFor();
    assert.equal((await listDevelopers(service.db)).at(-1)?.planId, 'free');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'You are signed out' }).waitFor();
    // The settings are gone, also by the back button.
    await page.goBack();
    await page.waitForURL('**/sign-in');
    assert.ok(!(await page.content()).includes('Film club'));
    await assertFits(page);
    await goToProvider(page, provider);
    await page.waitForURL('**/settings/keys');
    await page.getByText('Film club').first().waitFor();
  });
}
