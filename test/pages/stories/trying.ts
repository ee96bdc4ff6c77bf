import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { createKey } from '../../../src/keys/keys.js';
import { eventually } from '../../support/eventually.js';
import { leaveKept, type WatchedPage } from '../../support/programs/browser.js';
import { assertFits } from '../visits.js';
import type { Stage } from './stage.js';

/** Stories of somebody who calls operations from the reference. */
export function tryingStories(stage: Stage): void {
  const form = 'form[aria-label="Try getTitle"]';
  let watched: WatchedPage;
  let page: Page;

  before(async () => {
    // The title that the examples of the contract name, with characters that HTML and JSON escape.
    const title = { svc_id: 'blade-runner-1982', media_type: 'movie', title: 'Blade <b>Runner " 2\\' };
    await stage.service.db('titles').insert(title);
    watched = await stage.browser.newPage();
    ({ page } = watched);
    await watched.open('/docs#getTitle');
    await page.locator(`details:has(> ${form}) > summary`).click();
  });

  after(() => watched.close());

  // To load the reference again would take longer than most stories do.
  beforeEach(() =>
    page.evaluate(() => {
      Array.from(document.forms).forEach((each) => each.reset());
    }),
  );

  async function send(key: string): Promise<void> {
    await page.locator(`${form} [data-key]`).fill(key);
    await page.locator(`${form} button[type=submit]`).click();
  }

  /** Waits until the status of the call is announced. */
  async function says(text: RegExp): Promise<void> {
    const status = page.locator(form).getByRole('status');
    await eventually(`the status matches ${text}`, async () => text.test((await status.innerText()).trim()));
  }

  /** Leaves only the form in the page, since axe looks at the whole page to check a part of it. */
  async function removeOthers(): Promise<void> {
    await page.locator(form).evaluate((it) => {
      for (let part: Element = it; part.parentElement !== null && part !== document.body; part = part.parentElement) {
        for (const other of Array.from(part.parentElement.children)) if (other !== part) other.remove();
      }
    });
  }

  it('the samples beside a form call what the form describes, in every language and without the key', async () => {
    const column = page.locator('.operation-code', { has: page.locator(form) });
    const texts = () => column.locator('[data-remember="language"] code').allTextContents();
    const field = page.locator(`${form} [data-parameter="title_id"]`);
    const [before] = [await texts()];
    assert.ok(before.every((text) => text.includes('/api/v1/titles/blade-runner-1982')));
    await field.fill(`o'hara "$x"!`);
    const changed = await texts();
    assert.equal(changed.length, before.length);
    for (const text of changed) assert.ok(text.includes('/api/v1/titles/o%27hara%20%22%24x%22%21'), text);
    await page.locator(`${form} [data-key]`).fill(stage.service.key);
    await field.fill(stage.service.key);
    for (const text of await texts()) assert.ok(!text.includes(stage.service.key));
    await page.locator(form).evaluate((it: HTMLFormElement) => it.reset());
    await eventually('the samples are as before', async () => (await texts()).join() === before.join());
  });

  it('a change on the landing page leads to the form that looks its title up', async () => {
    const other = await stage.browser.newPage();
    await other.open('/');
    const change = other.page.locator('.newest a').first();
    const id = new URL((await change.getAttribute('href')) ?? '', stage.service.url).searchParams.get('title_id');
    await change.click();
    const field = other.page.locator(`${form} [data-parameter="title_id"]`);
    await field.waitFor({ state: 'visible' });
    assert.equal(await field.inputValue(), id);
    await other.close();
  });

  it('the reference calls an operation only with a key that is typed, and keeps the key nowhere', async () => {
    const calls: { url: string; authorization: string | undefined }[] = [];
    page.on('request', (request) => {
      if (request.resourceType() === 'fetch')
        calls.push({ url: request.url(), authorization: request.headers().authorization });
    });
    const key = page.locator(`${form} [data-key]`);
    await page.locator(`${form} button[type=submit]`).click();
    assert.equal(await page.locator(`${form} [data-key]:invalid`).count(), 1);
    await key.fill(stage.service.key);
    await key.press('Enter');
    await says(/^200 OK\s+\d+ ms\s+\d+ B$/);
    assert.deepEqual(calls, [
      { url: `${stage.service.url}/api/v1/titles/blade-runner-1982`, authorization: `Bearer ${stage.service.key}` },
    ]);
    const body = page.locator(`${form} figure code`);
    assert.match(await body.innerText(), /^\{\n {2}"data": \{\n {4}"svc_id": "blade-runner-1982",/);
    assert.ok((await body.innerText()).includes('"title": "Blade <b>Runner \\" 2\\\\"'));
    assert.equal(await body.locator('.t').first().innerText(), '"data"');
    const headers = page.locator(`${form} details`);
    assert.equal(await headers.locator('dl').isVisible(), false);
    await headers.getByText(/^Response headers \(\d+\)$/).click();
    assert.match(await headers.locator('dl').innerText(), /ratelimit\s+"minute";r=\d+/);
    // The other forms have it, so that it is typed once.
    assert.equal(await page.locator('form[aria-label="Try getMe"] [data-key]').inputValue(), stage.service.key);
    const kept = await page.evaluate(() => [document.cookie, Object.keys(localStorage), Object.keys(sessionStorage)]);
    assert.deepEqual([page.url(), ...kept], [`${stage.service.url}/docs#getTitle`, '', [], []]);
    assert.ok(!stage.service.logged.some((line) => line.includes(stage.service.key)));
    watched.assertNoFault();
    await leaveKept(page);
    assert.equal(await key.inputValue(), '');
    await key.fill(stage.service.key);
    await removeOthers();
    await assertFits(page, { part: form });
    await page.goto('about:blank');
    await page.goBack();
    assert.equal(await key.inputValue(), '');
    await page.locator(`details:has(> ${form}) > summary`).click();
  });

  it('a call from the reference that is refused, also by a proxy, says in words what is wrong', async () => {
    const limits = { requests_per_minute: 1, requests_per_day: 9, commercial_use: false };
    await stage.service.db('plans').insert({ id: 'one', name: 'One', ...limits });
    const { key } = await createKey(stage.service.db, { developerId: stage.developerId, planId: 'one' });
    await send('svc_wrong');
    await says(/^401 Unauthorized[^]*API key invalid\. /);
    await page.locator(form).getByText('"invalid_api_key"').waitFor();
    await page.locator(`${form} [data-parameter=title_id]`).fill('no-such-title');
    await send(key);
    await says(/^404 Not Found[^]*No such title\. /);
    await send(key);
    await says(/^429 Too Many Requests[^]*Rate limit exceeded\. You have used up your plan's requests per minute\./);
    await page.route(
      '**/api/v1/**',
      (route) => route.fulfill({ status: 502, contentType: 'text/html', body: '<h1>Bad Gateway</h1>' }),
      { times: 1 },
    );
    await send(stage.service.key);
    await says(/^502 Bad Gateway[^]*This response came from a proxy, not from the API\.$/);
  });

  it('a call with an ETag is answered with 304', async () => {
    const etag = page.getByLabel('If-None-Match').and(page.locator(`${form} input`));
    // A key that is pasted with its header field is sent as the key alone.
    await send(`Authorization: Bearer ${stage.service.key}`);
    await says(/^200 OK/);
    await page
      .locator(form)
      .getByText(/^Response headers/)
      .click();
    await etag.fill(await page.locator(`${form} dt:text-is("etag") + dd`).innerText());
    await send(stage.service.key);
    await says(/^304 Not Modified[^]*Unchanged since the response with this ETag/);
    assert.equal(await page.locator(`${form} figure`).isVisible(), false);
  });

  it('a call from the reference that gets no response says why, and what to do', async () => {
    await page.context().setOffline(true);
    await send(stage.service.key);
    await says(/^You are offline\./);
    await page.context().setOffline(false);
    await page.route('**/api/v1/**', (route) => route.abort('connectionrefused'));
    await send(stage.service.key);
    await says(/^The service did not answer\. It may be down: see its status page\./);
    await page.unroute('**/api/v1/**');
    await page.clock.install();
    await page.route('**/api/v1/**', () => undefined);
    await send(stage.service.key);
    await says(/^Waiting/);
    await page.clock.fastForward(10_000);
    await says(/^No response within 10 seconds\./);
    await page.unrouteAll();
  });
}
