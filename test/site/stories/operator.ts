import assert from 'node:assert/strict';
import { assertFits, signInOperatorByLink } from '../visits.js';
import type { Stage } from './stage.js';

/** The story of an operator. */
export function operatorStories(stage: Stage): void {
  it('an operator signs in, creates a developer, gets a link for them and suspends them', async () => {
    const watched = await stage.newProfile({ origin: stage.service.operatorUrl });
    const { page } = watched;
    await signInOperatorByLink(watched, stage.service.db);
    await page.getByRole('link', { name: 'Developers' }).click();
    await page.getByRole('link', { name: 'Create a developer' }).click();
    await page.getByLabel('Project name').fill('Ciné-club');
    await page.getByRole('button', { name: 'Create developer' }).click();
    await page.getByRole('heading', { name: 'Ciné-club' }).waitFor();
    const address = page.url();
    await page.getByRole('button', { name: 'Create a sign-in link' }).click();
    await page.getByText(/\/sign-in\/link\/[0-9a-f]{64}$/).waitFor();
    await assertFits(page);
    assert.equal(page.url(), address, 'the way back leads to a page, not to the form again');
    await page.getByRole('link', { name: 'Ciné-club' }).click();
    await page.getByRole('link', { name: 'Suspend' }).click();
    await page.getByRole('button', { name: 'Suspend developer' }).click();
    await page.getByRole('status').getByText('The developer is suspended.').waitFor();
    await page.getByRole('link', { name: 'Reinstate' }).waitFor();
    watched.assertNoFault();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.waitForURL('**/sign-in');
    await page.goBack();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  });
}
