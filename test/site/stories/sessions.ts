import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createKey, listKeys } from '../../../src/keys/keys.js';
import { signIn as signInByHttp } from '../../support/http/visitor.js';
import { coloursOf } from '../../support/programs/browser.js';
import type { Stage } from './stage.js';

/** Stories of a developer who is signed in, besides those of keys. */
export function sessionStories(stage: Stage): void {
  it('a phone shows each bar of the usage, the first number of each key and the meters at full height before anybody scrolls', async () => {
    const { page, open } = await stage.signIn('/settings/usage', { width: 390, height: 844 });
    const label = 'a label that is as long as a label of a key may well be in practice';
    const { key, prefix } = await createKey(stage.service.db, {
      developerId: stage.developerId,
      planId: 'free',
      label,
    });
    await stage.service.db.raw(
      `insert into api_key_usage (key_id, hour, served, refused, failed)
         select id, date_trunc('hour', now() - make_interval(hours => ago), 'UTC'), 987654, 1, 1
           from api_keys, generate_series(0, 24 * 29) as ago where prefix = ?`,
      [prefix],
    );
    for (let call = 0; call < 30; call += 1) {
      await stage.service.get('/api/v1/me', { headers: { 'x-api-key': key } });
    }
    await open('/settings/usage');
    const edges = await page.evaluate(
      (parts) => {
        const { left, right } = document.querySelector('h1')?.getBoundingClientRect() ?? { left: 0, right: 0 };
        return parts.flatMap((part) =>
          Array.from(document.querySelectorAll(part), (element) => element.getBoundingClientRect())
            .filter((place) => place.left < left || place.right > right)
            .map((place) => `${part} from ${place.left} to ${place.right}, not from ${left} to ${right}`),
        );
      },
      ['.chart-bar', '.chart svg', '.chart-label', '.key-name', '.usage-charts ~ .table-scroll td:nth-child(2)'],
    );
    assert.deepEqual(edges, []);
    // Half of the minute's limit is used, so the meter is full of colour in its first half.
    const shown = await page.locator('meter').first().screenshot();
    const colours = await coloursOf(page, shown, [
      [0.25, 0.15],
      [0.25, 0.85],
      [0.75, 0.5],
    ]);
    assert.equal(colours[0], colours[1]);
    assert.notEqual(colours[0], colours[2]);
    await page.getByRole('row', { name: prefix }).getByRole('link').click();
    await page.getByText(`Only the key ${label}`).waitFor();
    await page.getByRole('link', { name: '24 hours' }).click();
    await page.waitForURL(`**/settings/usage?range=24h&key=${prefix}`);
    await page.getByRole('combobox', { name: 'Key' }).selectOption('All keys');
    const [choice, show] = [page.getByRole('combobox', { name: 'Key' }), page.getByRole('button', { name: 'Show' })];
    // Both stand on one line.
    assert.equal((await choice.boundingBox())?.y, (await show.boundingBox())?.y);
    await show.click();
    await page.waitForURL('**/settings/usage?range=24h&key=');
    await page.getByRole('heading', { name: 'Requests in the last 24 hours' }).waitFor();
  });

  it('a name that turns the direction of text leaves the text around it as it was', async () => {
    await stage.service.db('developers').where({ id: stage.developerId }).update({ project_name: 'Film club \u202E' });
    const { page } = await stage.signIn('/sign-in');
    // The link stands in one line with the name.
    const [first, last] = await page.getByText('Go to the settings').evaluate((link) => {
      const text = link.firstChild as Text;
      return [0, text.length - 1].map((at) => {
        const range = document.createRange();
        range.setStart(text, at);
        range.setEnd(text, at + 1);
        return range.getBoundingClientRect().left;
      });
    });
    assert.ok(first !== undefined && last !== undefined && first < last, `${String(first)}, ${String(last)}`);
  });

  it('the settings are gone after signing out, also by the back button', async () => {
    const { page } = await stage.signIn('/settings/usage');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'You are signed out' }).waitFor();
    await page.goBack();
    await page.waitForURL('**/sign-in');
    assert.ok(!(await page.content()).includes('Film club'));
  });

  it('sessions are listed and ended one by one or all at once, and a form of an ended one changes nothing', async () => {
    const elsewhere = await signInByHttp(stage.service, stage.developerId);
    const { page } = await stage.signIn('/settings/sessions');
    assert.equal(await page.locator('tbody tr').count(), 2);
    await page.locator('tbody tr', { hasText: 'Visitor/1' }).getByRole('button').click();
    await page.waitForURL('**/settings/sessions');
    assert.equal(await page.locator('tbody tr').count(), 1);
    assert.equal((await elsewhere.get('/settings')).status, 303);
    const form = await page.context().newPage();
    await form.goto('/settings/keys/new');
    await page.getByText('The session has ended.').waitFor();
    await page.getByRole('button', { name: 'End all sessions' }).click();
    await page.getByText('All your sessions have ended.').waitFor();
    await form.getByRole('button', { name: 'Create key' }).click();
    await form.waitForURL('**/sign-in');
    assert.deepEqual(await listKeys(stage.service.db, stage.developerId), []);
    await form.close();
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
