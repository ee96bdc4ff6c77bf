import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import type { Page, Route } from 'playwright-core';
import { linkIdentity } from '../../src/accounts/identities.js';
import { listDevelopers, reinstateDeveloper, suspendDeveloper } from '../../src/developers/developers.js';
import { MAX_ACTIVE_KEYS } from '../../src/keys/key-change.js';
import { createKey, listKeys } from '../../src/keys/keys.js';
import { eventually } from '../support/eventually.js';
import { newDeveloper, signIn as signInByHttp } from '../support/http/visitor.js';
import {
  coloursOf,
  leaveKept,
  resize,
  startBrowser,
  type TestBrowser,
  type View,
  type WatchedPage,
} from '../support/programs/browser.js';
import type { IdentityProvider } from '../support/programs/identity-provider.js';
import { skipWithout } from '../support/programs/skip.js';
import { CHROMIUM, findProgram } from '../support/programs/system-program.js';
import type { TestService } from '../support/service.js';
import { startWithProvider } from './settings/oidc-service.js';
import { assertFits, signInQuietly } from './visits.js';

const KEY = /svc_[0-9A-Za-z]{8}_[0-9A-Za-z]{38}/;

/** As long as a subject of OpenID Connect may be. */
const LONGEST_SUBJECT = 'auth0|'.padEnd(255, '0123456789abcdef');

/** A phone on a mobile network: bytes per second, and milliseconds. */
const SLOW_CONNECTION = { offline: false, latency: 150, downloadThroughput: 200_000, uploadThroughput: 90_000 };

/** For the stories that scripts may change. */
const SCRIPTS = [
  { javaScript: true, how: 'with scripts' },
  { javaScript: false, how: 'without scripts' },
];

describe('a person in Chromium', () => {
  /** Identities that nobody knows may sign up. */
  let service: TestService;
  let provider: IdentityProvider;
  let program: string;
  let browser: TestBrowser;
  let developerId: number;
  let watched: WatchedPage;

  before(async function () {
    program = findProgram(CHROMIUM) ?? skipWithout('Chromium', this);
    ({ service, provider } = await startWithProvider('on'));
    browser = await startBrowser(program, service.url);
  });

  after(async () => {
    // Undefined if the tests were skipped.
    await (browser as TestBrowser | undefined)?.close();
    await (service as TestService | undefined)?.stop();
    await (provider as IdentityProvider | undefined)?.stop();
  });

  beforeEach(async () => (developerId = await newDeveloper(service)));
  afterEach(() => watched.close());

  async function visit(path: string, view: View = {}): Promise<Page> {
    watched = await browser.newPage(view);
    await watched.open(path);
    return watched.page;
  }

  async function signIn(path: string, view: View = {}): Promise<Page> {
    watched = await browser.newPage(view);
    await signInQuietly(watched, service, developerId);
    await watched.open(path);
    return watched.page;
  }

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
    return (await service.get('/api/v1/me', { headers: { 'x-api-key': key } })).status;
  }

  describe('who reads the documentation', () => {
    const form = 'form[aria-label="Try getTitle"]';

    /** Adds the title that the examples of the contract name, with characters that HTML and JSON escape. */
    async function addTitle(): Promise<void> {
      const title = { svc_id: 'blade-runner-1982', media_type: 'movie', title: 'Blade <b>Runner " 2\\' };
      await service.db('titles').insert(title).onConflict().ignore();
    }

    async function openTryIt(operationId: string): Promise<Page> {
      const page = await visit(`/docs#${operationId}`);
      await page.locator(`details:has(> form[aria-label="Try ${operationId}"]) > summary`).click();
      return page;
    }

    async function send(page: Page, key: string): Promise<void> {
      await page.locator(`${form} [data-key]`).fill(key);
      await page.locator(`${form} button[type=submit]`).click();
    }

    /** Waits until the status of the call is announced. */
    async function says(page: Page, text: RegExp): Promise<void> {
      const status = page.locator(form).getByRole('status');
      await eventually(`the status matches ${text}`, async () => text.test((await status.innerText()).trim()));
    }

    for (const { javaScript, how } of SCRIPTS) {
      it(`the first call is shown in each language, ${how}`, async () => {
        const page = await visit('/', { javaScript });
        for (const [label, text] of [
          ['curl', 'curl --fail-with-body'],
          ['JavaScript', 'await fetch('],
          ['Python', 'urllib.request'],
          ['Go', 'package main'],
          ['PHP', '<?php'],
          ['Java', 'public class'],
        ] as const) {
          await page.getByText(label, { exact: true }).first().click();
          assert.ok((await page.locator('.tab-panel:visible').innerText()).includes(text), label);
          assert.equal(await page.locator('.tab-panel:visible').count(), 1);
        }
      });
    }

    it('the language that was chosen last is shown by every sample, also on later pages', async () => {
      const page = await visit('/');
      await page.getByText('Python', { exact: true }).first().click();
      await page.goto('/docs');
      const shown = page.locator('[data-remember="language"] .tab-panel:visible');
      const groups = page.locator('[data-remember="language"]');
      assert.equal(await shown.filter({ hasText: 'urllib.request' }).count(), await groups.count());
      const last = groups.last().getByText('Go', { exact: true }).first();
      await last.scrollIntoViewIfNeeded();
      const top = (await last.boundingBox())?.y ?? assert.fail('the tab is not shown');
      await last.click();
      assert.equal(await shown.filter({ hasText: 'package main' }).count(), await groups.count());
      assert.ok(Math.abs(((await last.boundingBox())?.y ?? NaN) - top) < 1, 'the chosen tab stays in its place');
      await page.reload();
      assert.equal(await shown.filter({ hasText: 'package main' }).count(), await groups.count());
    });

    it('a remembered language shifts nothing at a deep link on a slow connection', async () => {
      watched = await browser.newPage({ width: 390, height: 844 });
      const { page } = watched;
      const session = await page.context().newCDPSession(page);
      await session.send('Network.emulateNetworkConditions', SLOW_CONNECTION);
      await page.addInitScript(() => localStorage.setItem('language', 'Java'));
      await page.goto('/docs#getTitle', { waitUntil: 'load' });
      const shift = await page.evaluate(
        () =>
          new Promise<number>((resolve) => {
            new PerformanceObserver((list, observer) => {
              const shifts = [...list.getEntries(), ...observer.takeRecords()];
              resolve(shifts.reduce((sum, entry) => sum + (entry as PerformanceEntry & { value: number }).value, 0));
            }).observe({ type: 'layout-shift', buffered: true });
            requestAnimationFrame(() => requestAnimationFrame(() => resolve(0)));
          }),
      );
      assert.equal(shift, 0);
      const shown = page.locator('[data-remember="language"] .tab-panel:visible');
      assert.equal(await shown.count(), await shown.filter({ hasText: 'public class' }).count());
    });

    for (const { javaScript, how } of SCRIPTS) {
      it(`a link to a heading leads to it${javaScript ? ' and is copied' : ''}, ${how}`, async () => {
        const page = await visit('/docs/guides/mirroring', { javaScript });
        const link = page.getByRole('link', { name: 'Link to Start from a copy' });
        assert.equal(await link.evaluate((it) => getComputedStyle(it).opacity), '0');
        await link.focus();
        if (javaScript)
          await eventually('it appears', () => link.evaluate((it) => getComputedStyle(it).opacity === '1'));
        await page.keyboard.press('Enter');
        const address = `${service.url}/docs/guides/mirroring#start-from-a-copy`;
        await page.waitForURL(address);
        if (javaScript) assert.equal(await page.evaluate(() => navigator.clipboard.readText()), address);
      });
    }

    it('a click on the link to a heading says that it is copied, also once the page has moved away under the pointer', async () => {
      const page = await visit('/docs/guides/mirroring');
      const link = page.getByRole('link', { name: 'Link to Start from a copy' });
      await page.getByRole('heading', { name: 'Start from a copy' }).hover();
      await link.click();
      await page.mouse.move(0, 0);
      const isSeen = (): Promise<boolean> =>
        link.evaluate((it) => {
          const { content } = getComputedStyle(it, '::after');
          it.blur();
          return content.includes('Link copied') && getComputedStyle(it).opacity === '1';
        });
      await eventually('the note is seen', isSeen);
    });

    for (const [path, ids] of [
      ['/docs', ['keys', 'paths', 'following-the-changes', 'getMe', 'headers', 'schemas', 'sdks']],
      ['/docs/guides/calling-the-api', ['errors']],
    ] as const) {
      it(`the contents of ${path} mark the part that a link leads to, and keep the mark in view`, async () => {
        const page = await visit(path, { width: 1280, height: 500 });
        const marked = page.locator('.sidebar [aria-current="location"]');
        for (const id of ids) {
          await page.locator(`.sidebar a[href="#${id}"]`).click();
          await eventually(`${id} is marked`, async () => (await marked.getAttribute('href')) === `#${id}`);
          assert.equal(await marked.count(), 1);
        }
        await page.goto('about:blank');
        await watched.open(`${path}#${ids[0]}`);
        await eventually('the first one is marked', async () => (await marked.getAttribute('href')) === `#${ids[0]}`);
        await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
        const last = await page.locator('.sidebar a[href^="#"]').last().getAttribute('href');
        await eventually('the last one is marked', async () => (await marked.getAttribute('href')) === last);
        const isInView = (): Promise<boolean> =>
          marked.evaluate((link) => {
            const { top, bottom } = link.getBoundingClientRect();
            const view = link.closest('.sidebar')?.getBoundingClientRect();
            return view !== undefined && top >= view.top && bottom <= view.bottom;
          });
        await eventually('the mark is in view', isInView);
      });
    }

    it('a link to a header field marks the chapter of the header fields, not the next one', async () => {
      const page = await visit('/docs#header-RetryAfter', { width: 1280, height: 1400 });
      const marked = page.locator('.sidebar [aria-current="location"]');
      await eventually('it is marked', async () => (await marked.getAttribute('href')) === '#headers');
    });

    it('an operation shows its sample, its fields and its example responses in this order on a phone, and samples beside fields on a wide screen', async () => {
      const page = await visit('/docs', { width: 390, height: 844 });
      const boxesOf = (): Promise<readonly { top: number; right: number; bottom: number; left: number }[]> =>
        page.evaluate(() => {
          const head = document.getElementById('getTitle');
          const code = head?.closest('.operation')?.querySelector('.operation-code');
          const others = ['parameters', '200', 'examples'].map((part) => document.getElementById(`getTitle-${part}`));
          return [head, code, ...others].map((part) => {
            const { top = NaN, right = NaN, bottom = NaN, left = NaN } = part?.getBoundingClientRect() ?? {};
            return { top, right, bottom, left };
          });
        });
      const tops = (await boxesOf()).map(({ top }) => top);
      assert.deepEqual(
        tops,
        tops.toSorted((a, b) => a - b),
      );
      await resize(page, { width: 1280, height: 800 });
      const [head, code, parameters, , examples] = await boxesOf();
      assert.ok(head && code && parameters && examples);
      assert.ok(code.left > head.right && examples.left >= code.left, 'two columns');
      assert.ok(examples.top >= code.bottom && examples.top < code.bottom + 50, 'the examples follow the sample');
      assert.ok(parameters.top < code.bottom, 'the fields follow the head');
    });

    it('the reference calls an operation with the key that is typed, and keeps the key nowhere', async () => {
      await addTitle();
      const page = await openTryIt('getTitle');
      const calls: { url: string; authorization: string | undefined }[] = [];
      page.on('request', (request) => {
        if (request.resourceType() === 'fetch')
          calls.push({ url: request.url(), authorization: request.headers().authorization });
      });
      const key = page.locator(`${form} [data-key]`);
      await key.fill(service.key);
      await key.press('Enter');
      await says(page, /^200 OK\s+\d+ ms\s+\d+ B$/);
      assert.deepEqual(calls, [
        { url: `${service.url}/api/v1/titles/blade-runner-1982`, authorization: `Bearer ${service.key}` },
      ]);
      const body = page.locator(`${form} figure code`);
      assert.match(await body.innerText(), /^\{\n {2}"data": \{\n {4}"svc_id": "blade-runner-1982",/);
      assert.ok((await body.innerText()).includes('"title": "Blade <b>Runner \\" 2\\\\"'));
      assert.equal(await body.locator('.t').first().innerText(), '"data"');
      const headers = page.locator(`${form} details`);
      assert.equal(await headers.locator('dl').isVisible(), false);
      await headers.getByText(/^Response headers \(\d+\)$/).click();
      assert.match(await headers.locator('dl').innerText(), /ratelimit\s+"minute";r=\d+/);
      await assertFits(page);
      // The other forms have it, so that it is typed once.
      assert.equal(await page.locator('form[aria-label="Try getMe"] [data-key]').inputValue(), service.key);
      const kept = await page.evaluate(() => [document.cookie, Object.keys(localStorage), Object.keys(sessionStorage)]);
      assert.deepEqual([page.url(), ...kept], [`${service.url}/docs#getTitle`, '', [], []]);
      assert.ok(!service.logged.some((line) => line.includes(service.key)));
      watched.assertNoFault();
      await leaveKept(page);
      assert.equal(await key.inputValue(), '');
      await key.fill(service.key);
      await page.goto('about:blank');
      await page.goBack();
      assert.equal(await key.inputValue(), '');
    });

    it('a call from the reference that is refused says in words what is wrong', async () => {
      const limits = { requests_per_minute: 1, requests_per_day: 9, commercial_use: false };
      await service.db('plans').insert({ id: 'one', name: 'One', ...limits });
      const { key } = await createKey(service.db, { developerId, planId: 'one' });
      const page = await openTryIt('getTitle');
      await send(page, 'svc_wrong');
      await says(page, /^401 Unauthorized[^]*API key invalid\. /);
      await page.locator(form).getByText('"invalid_api_key"').waitFor();
      await page.locator(`${form} [data-parameter=title_id]`).fill('no-such-title');
      await send(page, key);
      await says(page, /^404 Not Found[^]*No such title\. /);
      await send(page, key);
      await says(
        page,
        /^429 Too Many Requests[^]*Rate limit exceeded\. You have used up your plan's requests per minute\./,
      );
    });

    it('an error of a proxy in front of the service is named as such', async () => {
      const page = await openTryIt('getTitle');
      await page.route('**/api/v1/**', (route) =>
        route.fulfill({ status: 502, contentType: 'text/html', body: '<h1>Bad Gateway</h1>' }),
      );
      await send(page, service.key);
      await says(page, /^502 Bad Gateway[^]*This response came from a proxy, not from the API\.$/);
    });

    it('a key that is pasted with its header field is sent as the key alone', async () => {
      await addTitle();
      const page = await openTryIt('getTitle');
      for (const before of ['Bearer ', 'bearer  ', 'Authorization: Bearer ']) {
        await send(page, `${before}${service.key}`);
        await says(page, /^200 OK/);
      }
      assert.equal(await page.locator(`${form} [data-key]`).inputValue(), service.key);
    });

    it('a call from the reference with the ETag of the last response is answered with 304, which has no body', async () => {
      await addTitle();
      const page = await openTryIt('getTitle');
      await send(page, service.key);
      await says(page, /^200 OK/);
      await page
        .locator(form)
        .getByText(/^Response headers/)
        .click();
      const etag = await page.locator(`${form} dt:text-is("etag") + dd`).innerText();
      await page
        .getByLabel('If-None-Match')
        .and(page.locator(`${form} input`))
        .fill(etag);
      await send(page, service.key);
      await says(page, /^304 Not Modified[^]*Unchanged since the response with this ETag/);
      assert.equal(await page.locator(`${form} figure`).isVisible(), false);
    });

    it('a call from the reference that gets no response says why, and what to do', async () => {
      const page = await openTryIt('getTitle');
      await page.context().setOffline(true);
      await send(page, service.key);
      await says(page, /^You are offline\./);
      await page.context().setOffline(false);
      await page.route('**/api/v1/**', (route) => route.abort('connectionrefused'));
      await send(page, service.key);
      await says(page, /^The service did not answer\. It may be down: see its status on the home page\./);
      await page.unroute('**/api/v1/**');
      await page.clock.install();
      await page.route('**/api/v1/**', () => undefined);
      await send(page, service.key);
      await says(page, /^Waiting/);
      await page.clock.fastForward(10_000);
      await says(page, /^No response within 10 seconds\./);
    });

    it('a call from the reference is sent only with a key and with parameters that fit the contract', async () => {
      const page = await openTryIt('getTitle');
      let calls = 0;
      page.on('request', () => (calls += 1));
      const isInvalid = (field: string): Promise<number> => page.locator(`${form} ${field}:invalid`).count();
      await page.locator(`${form} button[type=submit]`).click();
      assert.equal(await isInvalid('[data-key]'), 1);
      await page.locator(`${form} [data-parameter=title_id]`).fill('a/../b');
      await send(page, service.key);
      assert.deepEqual([await isInvalid('[data-key]'), await isInvalid('[data-parameter=title_id]')], [0, 1]);
      assert.equal(
        await page.locator(`${form} [data-parameter=title_id]`).getAttribute('title'),
        '1 to 64 letters, digits, hyphens and underscores.',
      );
      await page.locator(`${form} [data-parameter=title_id]`).fill('a-b_C9');
      assert.equal(await isInvalid('[data-parameter=title_id]'), 0);
      await page.locator('form[aria-label="Try getChanges"] [data-parameter=since]').evaluate((since) => {
        (since as HTMLInputElement).value = '-1';
      });
      assert.equal(await page.locator('form[aria-label="Try getChanges"] [data-parameter=since]:invalid').count(), 1);
      assert.equal(calls, 0);
      watched.assertNoFault();
    });

    it('a call is copied as a curl command that runs, with $KEY in place of the key', async () => {
      await addTitle();
      const page = await openTryIt('getTitle');
      await page.locator(`${form} [data-key]`).fill(service.key);
      await page
        .getByLabel('If-None-Match')
        .and(page.locator(`${form} input`))
        .fill(`"it's", "${service.key}"`);
      await page.locator(form).getByRole('button', { name: 'Copy as curl' }).click();
      await page.locator(form).getByRole('button', { name: 'Copied' }).waitFor();
      const command = await page.evaluate(() => navigator.clipboard.readText());
      assert.ok(command.includes('"Authorization: Bearer $KEY"') && !command.includes(service.key), command);
      const { stdout } = await promisify(execFile)('sh', ['-c', `${command} --silent`], {
        env: { ...process.env, KEY: service.key },
      });
      assert.ok(stdout.includes('"svc_id":"blade-runner-1982"'), stdout);
    });
  });

  describe('who manages keys', () => {
    for (const { javaScript, how } of SCRIPTS) {
      it(`a developer creates, rolls and revokes a key and reads the events, ${how}`, async () => {
        const page = await signIn('/settings/keys', { javaScript });
        const fits = async (): Promise<void> => {
          if (javaScript) await assertFits(page);
        };
        await page.getByText('You have no keys yet').waitFor();
        await page.getByRole('link', { name: 'Create your first key' }).click();
        assert.equal(await page.getByLabel('Expires').inputValue(), '90');
        await page.getByLabel('Expires').selectOption('On a date');
        await page.getByRole('button', { name: 'Create key' }).click();
        await page.getByRole('alert').getByText('Enter an expiry date.').waitFor();
        assert.equal(await page.getByLabel('Expires').inputValue(), 'date');
        await fits();
        await watched.open('/settings/keys/new');
        await page.getByLabel('Label').fill('a label that is as long as a label of a key may well be in practice');
        await page.getByLabel('Expires').selectOption('365');
        await page.getByRole('button', { name: 'Create key' }).click();
        const first = await shownKey(page);
        await page.getByText('Bearer $KEY').first().waitFor();
        assert.equal(await statusOf(first), 200);
        if (javaScript) {
          await page.locator('.secret .copy-button').click();
          await page.getByRole('button', { name: 'Copied' }).waitFor();
          assert.equal(await page.evaluate(() => navigator.clipboard.readText()), first);
        }
        await fits();

        await page.getByRole('link', { name: 'Done' }).click();
        await page.getByRole('heading', { name: 'a label that is as long' }).waitFor();
        await fits();
        await page.getByRole('link', { name: 'Roll key' }).click();
        await page.getByRole('group', { name: 'Keep the old key for' }).getByLabel('1 hour').check();
        await page.getByRole('button', { name: 'Roll key' }).click();
        await page.getByRole('heading', { name: 'Key rolled' }).waitFor();
        const second = await shownKey(page);
        assert.deepEqual([await statusOf(first), await statusOf(second)], [200, 200]);
        await fits();

        await page.getByRole('link', { name: 'Done' }).click();
        await page.getByRole('link', { name: 'All keys' }).click();
        await page.getByText(`Replaced by ${second.slice(0, 12)} (a label`).waitFor();
        await page.getByRole('link', { name: `Revoke ${first.slice(0, 12)}` }).click();
        await page.getByRole('button', { name: `Revoke ${first.slice(0, 12)}` }).click();
        await page.getByText('has been revoked. Requests that use it will fail immediately.').waitFor();
        assert.deepEqual([await statusOf(first), await statusOf(second)], [401, 200]);
        await fits();

        await page.goto('/revoke-leaked-key');
        await page.getByLabel('API key').fill(second);
        await page.getByRole('button', { name: 'Revoke key' }).click();
        await page.getByText('The key has been revoked').waitFor();
        assert.equal(await statusOf(second), 401);
        await page.goto('/settings/events');
        for (const text of ['Key rolled:', 'Somebody who found the key']) await page.getByText(text).waitFor();
        watched.assertNoFault();
      });

      it(`a double click creates one key, ${how}`, async () => {
        const page = await signIn('/settings/keys/new', { javaScript });
        await page.getByRole('button', { name: 'Create key' }).dblclick();
        // Without the script, the browser may show the answer to the second click, which explains what to do.
        await page
          .getByRole('heading', { name: javaScript ? 'Key created' : /^(Key created|Nothing was changed)$/ })
          .waitFor();
        assert.equal((await listKeys(service.db, developerId)).length, 1);
        if (javaScript) assert.match(await shownKey(page), KEY);
      });
    }

    for (const { javaScript, how } of SCRIPTS) {
      it(`a developer finds a key among many, edits it, is warned of a label that is taken, and reads that there is no room, ${how}`, async () => {
        const create = (label: string): ReturnType<typeof createKey> =>
          createKey(service.db, { developerId, planId: 'free', label });
        const { prefix } = await create('production');
        for (let i = 1; i < MAX_ACTIVE_KEYS - 1; i += 1) await create(`worker ${i}`);
        const page = await signIn('/settings/keys', { javaScript });
        await page.getByText('19 of 20 active keys').waitFor();
        await page.getByLabel('Filter by label or prefix').fill('PRODUCT');
        await page.getByLabel('Filter by label or prefix').press('Enter');
        await page.waitForURL('**/settings/keys?q=PRODUCT');
        assert.equal(await page.locator('tbody tr').count(), 1);
        if (javaScript) await assertFits(page);
        await page.getByRole('link', { name: 'production' }).click();
        await page.waitForURL(`**/settings/keys/${prefix}`);

        await page.getByRole('link', { name: 'Change the label' }).click();
        await page.getByLabel('Label').fill('worker 7');
        await page.getByRole('button', { name: 'Save label' }).click();
        await page.getByRole('alert').getByText('You already have an active key with the label “worker 7”').waitFor();
        if (javaScript) await assertFits(page);
        await page.getByLabel('Label').fill('production, EU');
        await page.getByRole('button', { name: 'Save anyway' }).click();
        await page.getByRole('status').getByText('The label has been changed.').waitFor();
        await page.getByRole('heading', { name: 'production, EU' }).waitFor();

        await page.getByRole('link', { name: 'Change the expiry' }).click();
        const date = page.getByLabel('Expiry date');
        assert.equal(await date.isVisible(), false);
        await page.getByLabel('Expires').selectOption('On a date');
        await date.fill('2100-02-28');
        await page.getByRole('button', { name: 'Save expiry' }).click();
        await page.getByRole('status').getByText('The expiry has been changed.').waitFor();
        await page.getByText('(2100-02-28 00:00 UTC)').waitFor();
        // The pages of the forms are in the history, and their answers are not.
        await page.goBack();
        await page.getByRole('heading', { name: 'Change the expiry' }).waitFor();
        await page.goForward();
        await page.getByRole('heading', { name: 'production, EU' }).waitFor();
        assert.equal(await page.getByRole('status').count(), 0);

        await page.goto('/settings/keys/new');
        await page.getByLabel('Label').fill('worker 7');
        await page.getByRole('button', { name: 'Create key' }).click();
        await page.getByRole('button', { name: 'Create anyway' }).click();
        await page.getByRole('heading', { name: 'Key created' }).waitFor();
        await page.getByRole('link', { name: 'Done' }).click();
        await page.getByRole('link', { name: 'All keys' }).click();
        await page.getByText('You have 20 of 20 active keys.').waitFor();
        assert.equal(await page.getByRole('link', { name: 'Create a key' }).count(), 0);
        await page.goto('/settings/keys/new');
        await page.getByText('first revoke a key').waitFor();
        assert.equal(await page.getByLabel('Label').count(), 0);
      });
    }

    it('a form is sent once, since the answer to a second one would take the place of the key', async () => {
      const page = await signIn('/settings/keys/new');
      const button = (await page.getByRole('button', { name: 'Create key' }).boundingBox()) ?? assert.fail();
      const [x, y] = [button.x + button.width / 2, button.y + button.height / 2];
      const sent: Route[] = [];
      await page.route('**/settings/keys/new', async (route) => {
        sent.push(route);
      });
      await page.mouse.click(x, y);
      await eventually('the form is sent', () => sent.length > 0);
      // A locator would wait for the answer.
      await page.mouse.click(x, y);
      for (const route of sent) await route.continue();
      assert.match(await shownKey(page), KEY);
      assert.equal(sent.length, 1);
    });

    it('a key is shown once: not after a reload, on the way back, or in a page that the browser keeps', async () => {
      const page = await signIn('/settings/keys');
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

    it('a key is shown once without scripts: a reload explains that it was created', async () => {
      const page = await signIn('/settings/keys', { javaScript: false });
      const key = await create(page, 'once');
      await page.reload();
      await page.getByText('This form was already submitted').waitFor();
      assert.ok(!(await page.locator('body').innerText()).includes(key));
      assert.equal((await listKeys(service.db, developerId)).length, 1);
    });

    it('a key that one tab has revoked cannot be rolled in another', async () => {
      const { prefix } = await createKey(service.db, { developerId, planId: 'free' });
      const first = await signIn(`/settings/keys/${prefix}/roll`);
      const second = await first.context().newPage();
      await second.goto(`/settings/keys/${prefix}/revoke`);
      await second.getByRole('button', { name: `Revoke ${prefix}` }).click();
      await second.getByText('has been revoked.').waitFor();
      await first.getByRole('button', { name: 'Roll key' }).click();
      await first.getByText('This key is revoked. Create a new key.').waitFor();
      assert.equal((await listKeys(service.db, developerId)).length, 1);
    });

    it('a suspended developer reads the settings and changes nothing', async () => {
      const page = await signIn('/settings/keys');
      const key = await create(page, 'production');
      await page.goto(`/settings/keys/${key.slice(0, 12)}/revoke`);
      await suspendDeveloper(service.db, developerId);
      // The page was open before.
      await page.getByRole('button', { name: 'Revoke' }).click();
      await page.getByText('Nothing was changed.').waitFor();
      await assertFits(page);
      await page.getByRole('link', { name: 'Go to your keys' }).click();
      await page.getByText('Your account is suspended.').waitFor();
      const changes = page.locator('main').getByRole('link', { name: /Roll|Revoke|Create/ });
      assert.equal(await changes.count(), 0);
      await assertFits(page);
      await reinstateDeveloper(service.db, developerId);
      await page.reload();
      await page.getByRole('link', { name: `Roll ${key.slice(0, 12)}` }).waitFor();
    });
  });

  describe('who is signed in', () => {
    it('a phone shows each bar of the usage, the first number of each key and the meters at full height before anybody scrolls', async () => {
      const page = await signIn('/settings/usage', { width: 390, height: 844 });
      const label = 'a label that is as long as a label of a key may well be in practice';
      const { key, prefix } = await createKey(service.db, { developerId, planId: 'free', label });
      await service.db.raw(
        `insert into api_key_usage (key_id, hour, served, refused, failed)
         select id, date_trunc('hour', now() - make_interval(hours => ago), 'UTC'), 987654, 1, 1
           from api_keys, generate_series(0, 24 * 29) as ago where prefix = ?`,
        [prefix],
      );
      for (let call = 0; call < 30; call += 1) await statusOf(key);
      await watched.open('/settings/usage');
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
      await service.db('developers').where({ id: developerId }).update({ project_name: 'Film club \u202E' });
      const page = await signIn('/sign-in');
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
      const page = await signIn('/settings/usage');
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.getByRole('heading', { name: 'You are signed out' }).waitFor();
      await page.goBack();
      await page.waitForURL('**/sign-in');
      assert.ok(!(await page.content()).includes('Film club'));
    });

    it('sessions are listed and ended one by one or all at once, and a form of an ended one changes nothing', async () => {
      const elsewhere = await signInByHttp(service, developerId);
      const page = await signIn('/settings/sessions', { javaScript: false });
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
      assert.deepEqual(await listKeys(service.db, developerId), []);
    });

    it('another site in the same browser can neither sign the developer out nor put a page into a frame', async () => {
      const page = await signIn('/settings');
      // On another port of this machine: browsers send it the same cookies.
      const server = createServer((_request, response) => {
        const form = `<form method="post" action="${service.url}/sign-out"><button>Win</button></form>`;
        response
          .writeHead(200, { 'content-type': 'text/html' })
          .end(`<iframe src="${service.url}/settings"></iframe>${form}`);
      }).listen(0, '127.0.0.1');
      await once(server, 'listening');
      try {
        await page.goto(`http://127.0.0.1:${String((server.address() as AddressInfo).port)}/`);
        await page.waitForLoadState('networkidle');
        assert.equal(await page.frameLocator('iframe').getByRole('button', { name: 'Sign out' }).count(), 0);
        await page.getByRole('button', { name: 'Win' }).click();
        await page.getByText('was not sent from a page of this service').waitFor();
      } finally {
        server.closeAllConnections();
        server.close();
      }
      assert.equal(await watched.open('/settings'), 200);
      assert.ok(page.url().endsWith('/settings'));
    });
  });

  describe('who signs in at the identity provider', () => {
    let persons = 0;

    /** Signs somebody in whom nobody knows. */
    async function arrive(path: string, view: View = {}, subject = `person-${(persons += 1)}`): Promise<Page> {
      provider.subject = subject;
      const page = await visit(path, view);
      await goToProvider(page);
      return page;
    }

    async function goToProvider(page: Page): Promise<void> {
      await page.getByRole('link', { name: `Sign in with ${new URL(provider.issuer).host}` }).click();
    }

    for (const { javaScript, how } of SCRIPTS) {
      it(`a stranger names a project, reaches the page that was requested first, and signs in again later, ${how}`, async () => {
        const page = await arrive('/settings/keys', { javaScript });
        await page.waitForURL('**/sign-up');
        await page.getByLabel('Project name').fill('   ');
        await page.getByRole('button', { name: 'Create project' }).click();
        await page.getByRole('alert').getByText('Enter a name of 1 to 200 characters').waitFor();
        assert.equal(await page.getByLabel('Project name').getAttribute('aria-invalid'), 'true');
        if (javaScript) await assertFits(page);
        await page.getByLabel('Project name').fill('Film club');
        await page.getByRole('button', { name: 'Create project' }).click();
        await page.waitForURL('**/settings/keys');
        await page.getByText('Film club').waitFor();
        assert.equal((await listDevelopers(service.db)).at(-1)?.planId, 'free');
        await page.getByRole('button', { name: 'Sign out' }).click();
        await page.getByRole('link', { name: 'Sign in' }).click();
        await page.waitForURL('**/sign-in');
        if (javaScript) await assertFits(page);
        await goToProvider(page);
        await page.waitForURL('**/settings');
        await page.getByText('Film club').first().waitFor();
      });
    }

    describe('when signing up is off', () => {
      let open: { service: TestService; provider: IdentityProvider; browser: TestBrowser };

      before(async () => {
        open = { service, provider, browser };
        ({ service, provider } = await startWithProvider('off'));
        browser = await startBrowser(program, service.url);
      });

      after(async () => {
        await browser.close();
        await service.stop();
        await provider.stop();
        ({ service, provider, browser } = open);
      });

      it('a stranger sees what to send to the operator, and signs in once linked', async () => {
        const page = await arrive('/settings', {}, LONGEST_SUBJECT);
        await page.getByRole('heading', { name: 'Your identity is not linked yet' }).waitFor();
        await assertFits(page);
        const shown = await page.locator('.code-block').first().innerText();
        const [, issuer = '', subject = ''] = /Issuer: +(\S+)\s+Subject: +(\S+)/.exec(shown) ?? assert.fail(shown);
        assert.deepEqual([issuer, subject], [provider.issuer, LONGEST_SUBJECT]);
        await linkIdentity(service.db, await newDeveloper(service, 'Book club'), { issuer, subject });
        await page.getByRole('link', { name: 'Sign in again' }).click();
        await goToProvider(page);
        await page.waitForURL('**/settings');
        await page.getByText('Book club').first().waitFor();
      });
    });
  });
});
