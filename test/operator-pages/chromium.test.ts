import assert from 'node:assert/strict';
import { testBrowser } from '../support/http/test-browser.js';
import { assertFits, signInOperatorByLink } from '../site/visits.js';

describe('an operator in Chromium', () => {
  const started = testBrowser({ settings: { METRICS_ADDRESS: '127.0.0.1:0' } });

  for (const javaScript of [true, false]) {
    it(`an operator signs in, creates a developer, gets a link for them and suspends them, ${javaScript ? 'with' : 'without'} scripts`, async () => {
      const { service, browser } = started();
      const watched = await browser.newPage({ origin: service.operatorUrl, javaScript });
      const { page } = watched;
      await signInOperatorByLink(watched, service.db);
      await page.getByRole('link', { name: 'Developers' }).click();
      await page.getByRole('link', { name: 'Create a developer' }).click();
      await page.getByLabel('Project name').fill('Ciné-club');
      await page.getByRole('button', { name: 'Create developer' }).click();
      await page.getByRole('heading', { name: 'Ciné-club' }).waitFor();
      const address = page.url();
      await page.getByRole('button', { name: 'Create a sign-in link' }).click();
      await page.getByText(/\/sign-in\/link\/[0-9a-f]{64}$/).waitFor();
      if (javaScript) {
        await assertFits(page);
        assert.equal(page.url(), address, 'the way back leads to a page, not to the form again');
      }
      await page.getByRole('link', { name: 'Ciné-club' }).click();
      await page.getByRole('link', { name: 'Suspend' }).click();
      await page.getByRole('button', { name: 'Suspend developer' }).click();
      await page.getByRole('status').getByText('The developer is suspended.').waitFor();
      if (javaScript) await assertFits(page);
      await page.getByRole('link', { name: 'Reinstate' }).waitFor();
      watched.assertNoFault();
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.waitForURL('**/sign-in');
      await page.goBack();
      await page.getByRole('heading', { name: 'Sign in' }).waitFor();
      await watched.close();
    });
  }
});
