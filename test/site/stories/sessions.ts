import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Stage } from './stage.js';

/** Stories of a developer who is signed in, besides those of keys. */
export function sessionStories(stage: Stage): void {
  it('the settings are gone after signing out, also by the back button', async () => {
    const { page } = await stage.signIn('/settings/usage');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'You are signed out' }).waitFor();
    await page.goBack();
    await page.waitForURL('**/sign-in');
    assert.ok(!(await page.content()).includes('Film club'));
  });

  it('another site in the same browser can neither sign the developer out nor put a page into a frame', async () => {
    const { page, open } = await stage.signIn('/settings');
    // On another port of this machine: browsers send it the same cookies.
    const server = createServer((_request, response) => {
      const form = `<form method="post" action="${stage.service.url}/sign-out"><button>Win</button></form>`;
      response
        .writeHead(200, { 'content-type': 'text/html' })
        .end(`<iframe src="${stage.service.url}/settings"></iframe>${form}`);
    }).listen(0, 'localhost');
    await once(server, 'listening');
    try {
      await page.goto(`http://localhost:${String((server.address() as AddressInfo).port)}/`);
      await page.waitForLoadState('networkidle');
      assert.equal(await page.frameLocator('iframe').getByRole('button', { name: 'Sign out' }).count(), 0);
      await page.getByRole('button', { name: 'Win' }).click();
      await page.getByText('was not sent from a page of this service').waitFor();
    } finally {
      server.closeAllConnections();
      server.close();
    }
    assert.equal(await open('/settings'), 200);
    assert.ok(page.url().endsWith('/settings'));
  });
}
