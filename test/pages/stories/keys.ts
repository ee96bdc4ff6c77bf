import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { createSignInLink } from '../../../src/accounts/sign-in-links.js';
import { listKeys } from '../../../src/keys/keys.js';
import { eventually } from '../../support/eventually.js';
import { leaveKept } from '../../support/programs/browser.js';
import { assertFits, signInQuietly } from '../visits.js';
import type { Stage } from './stage.js';

const KEY = /svc_[0-9A-Za-z]{8}_[0-9A-Za-z]{38}/;

/** Stories of a developer who manages keys. */
export function keyStories(stage: Stage): void {
  async function create(page: Page, label: string): Promise<string> {
    await page.goto('/settings/keys/new');
    await page.getByLabel('Label').fill(label);
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByRole('heading', { name: 'Key created' }).waitFor();
    return shownKey(page);
  }

  async function shownKey(page: Page): Promise<string> {
    return KEY.exec(await page.locator('.secret code').innerText())?.[0] ?? assert.fail('no key is shown');
  }

  async function statusOf(key: string): Promise<number> {
    return (await stage.service.get('/api/v1/me', { headers: { 'x-api-key': key } })).status;
  }

  it('a developer creates, rolls and revokes a key and reads the events', async () => {
    const { page, assertNoFault } = await stage.signIn('/settings/keys');
    await page.getByText('You have no active keys').waitFor();
    await page.getByRole('link', { name: 'Create a key' }).click();
    await page.getByLabel('Label').fill('a label that is as long as a label of a key may well be in practice');
    await page.getByLabel('Expires').selectOption('365');
    await page.getByRole('button', { name: 'Create key' }).click();
    const first = await shownKey(page);
    await page.getByText('Bearer $CATALOG_API_KEY').first().waitFor();
    // The button that copies the key has the focus.
    await page.locator('button:focus').getByText('Copy key').waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), first);
    await assertFits(page);

    await page.getByText('Waiting for your first request').waitFor();
    assert.equal(await statusOf(first), 200);
    // As a server saves it.
    const { db } = stage.service;
    await db('api_keys')
      .where({ prefix: first.slice(0, 12) })
      .update({ last_used_at: db.fn.now() });
    await db.raw(
      `insert into api_key_outcomes (key_id, hour, operation, outcome, requests)
       select id, date_trunc('hour', now(), 'UTC'), 'getMe', 'success', 1 from api_keys where prefix = ?`,
      [first.slice(0, 12)],
    );
    await page.getByText(/^Received: a request to \w+, successful\.$/).waitFor();
    await page.getByRole('link', { name: 'Done, I’ve saved it' }).click();
    await page.getByRole('heading', { name: 'a label that is as long' }).waitFor();
    assert.equal(await page.getByText('first request').count(), 0);
    await page.getByRole('link', { name: 'Roll key' }).click();
    await page.getByRole('group', { name: 'Old key stays valid for' }).getByLabel('1 hour').check();
    await page.getByRole('button', { name: 'Roll key' }).click();
    await page.getByRole('heading', { name: 'Key rolled' }).waitFor();
    const second = await shownKey(page);
    assert.deepEqual([await statusOf(first), await statusOf(second)], [200, 200]);

    await page.getByRole('link', { name: 'Done, I’ve saved it' }).click();
    await page.getByRole('link', { name: 'All keys' }).click();
    await page.getByText(`Replaced by ${second.slice(0, 12)} (a label`).waitFor();
    await page.getByRole('link', { name: `Revoke ${first.slice(0, 12)}` }).click();
    await page.getByRole('button', { name: `Revoke ${first.slice(0, 12)}` }).click();
    await page.getByText('has been revoked. Requests with it now fail.').waitFor();
    assert.deepEqual([await statusOf(first), await statusOf(second)], [401, 200]);
    await assertFits(page);

    await page.goto('/revoke-leaked-key');
    await page.getByLabel('API key').fill(second);
    await page.getByRole('button', { name: 'Revoke key' }).click();
    await page.getByText('The key has been revoked').waitFor();
    assert.equal(await statusOf(second), 401);
    await page.goto('/settings/events');
    for (const text of ['Key rolled:', 'Reported by a finder']) await page.getByText(text).waitFor();
    assertNoFault();
  });

  it('what was typed comes back after a new sign-in when the sign-in had become too old', async () => {
    const { db } = stage.service;
    const { page, open } = await stage.signIn('/settings/keys/new');
    await page.getByLabel('Label').fill('Produktion & “Test” +1');
    await page.getByLabel('Expires').selectOption('30');
    await db('sessions')
      .where({ developer_id: stage.developerId })
      .update({ signed_in_at: db.raw("now() - interval '16 minutes'") });
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByText('Your form was not processed, and nothing was changed.').waitFor();
    // Neither the way back nor another tab replaces the form.
    await open('/settings/keys/new');
    await page.getByText('Your form was not processed, and nothing was changed.').waitFor();
    await open(`/sign-in/link/${await createSignInLink(db, stage.developerId)}`);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.waitForURL('**/settings/keys/new?*');
    await page.getByRole('alert').getByText('we asked you to sign in again. Nothing was changed.').waitFor();
    assert.equal(await page.getByLabel('Label').inputValue(), 'Produktion & “Test” +1');
    assert.equal(await page.getByLabel('Expires').inputValue(), '30');
    await assertFits(page, { part: 'main' });
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByRole('heading', { name: 'Key created' }).waitFor();
    assert.deepEqual(
      (await listKeys(db, stage.developerId)).map(({ label }) => label),
      ['Produktion & “Test” +1'],
    );
  });

  it('a form is sent once, since a second answer would take the place of the key, and again ten seconds after it was stopped', async () => {
    // A profile keeps such a clock for good.
    const watched = await stage.newProfile();
    await signInQuietly(watched, stage.service, stage.developerId);
    const { page, open } = watched;
    await page.clock.install();
    await open('/settings/keys/new');
    let sent = 0;
    await page.route('**/settings/keys/new', async (route) => {
      if (route.request().method() !== 'POST') return route.continue();
      sent += 1;
      // As after Stop: the page stays.
      return route.fulfill({ status: 204 });
    });
    const send = (): Promise<void> => page.getByRole('button', { name: 'Create key' }).click();
    await send();
    await eventually('the form is sent', () => sent === 1);
    await send();
    await page.clock.runFor(9_000);
    assert.equal(sent, 1);
    await page.clock.runFor(1_000);
    await send();
    await eventually('the form is sent again', () => sent === 2);
  });

  it('a key is shown once: not after a reload, on the way back, or in a page that the browser keeps', async () => {
    const { page } = await stage.signIn('/settings/keys');
    const text = (): Promise<string> => page.locator('body').innerText();
    const first = await create(page, 'once');
    // The page of the key has taken the place of the answer in the history.
    await page.reload();
    await page.getByRole('heading', { name: 'once' }).waitFor();
    assert.ok(!(await text()).includes(first));
    const second = await create(page, 'twice');
    await page.goto('/settings/keys');
    await page.goBack();
    await page.getByRole('heading', { name: 'twice' }).waitFor();
    assert.ok(!(await text()).includes(second));
    const third = await create(page, 'kept');
    await leaveKept(page);
    await page.getByText('This key is no longer shown.').waitFor();
    assert.ok(!(await text()).includes(third));
  });
}
