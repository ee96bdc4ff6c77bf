import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { createDeveloper } from '../../../src/developers/developers.js';
import { readUsageByDay } from '../../../src/usage/daily-usage.js';
import { ask, startDeployment, type Deployment } from '../../support/deployments/deployment.js';
import { eventually } from '../../support/eventually.js';
import { expireIn } from '../../support/keys/expiry.js';
import { runProgram } from '../../support/program.js';
import { startBrowser, type TestBrowser } from '../../support/programs/browser.js';
import { skipWithout } from '../../support/programs/skip.js';
import { CHROMIUM, findProgram } from '../../support/programs/system-program.js';

const KEY = /svc_[0-9A-Za-z]{8}_[0-9A-Za-z]{38}/;

describe('a developer in Chromium, with two server processes and Redis', () => {
  let deployment: Deployment;
  let browser: TestBrowser;
  /** The servers' addresses: the browser is at the first. */
  let urls: readonly string[];

  before(async function () {
    const program = findProgram(CHROMIUM) ?? skipWithout('Chromium', this);
    deployment = await startDeployment({ SITE: 'on' }, 2);
    urls = deployment.servers.map(({ url }) => url);
    browser = await startBrowser(program, urls[0] ?? '');
  });

  after(async () => {
    // Undefined where the tests were skipped.
    await (browser as TestBrowser | undefined)?.close();
    await (deployment as Deployment | undefined)?.stop();
  });

  /** What each server answers to a key. @param address - of the client: keys that fail are limited by it */
  function statusesOf(key: string, address: string): Promise<number[]> {
    return Promise.all(urls.map(async (url) => (await ask(url, key, address)).status));
  }

  /** Runs `catalog developers sign-in-link`. @returns the link that it prints */
  async function printLink(developerId: number): Promise<string> {
    const environment = { ...deployment.environment, PUBLIC_URL: urls[0] ?? '' };
    const { stdout, stderr } = await runProgram(['developers', 'sign-in-link', String(developerId)], environment);
    return /http:\S+/.exec(stdout)?.[0] ?? assert.fail(stderr);
  }

  async function shownKey(page: Page): Promise<string> {
    const text = await page.locator('.secret code').innerText();
    await page.getByRole('link', { name: 'Done' }).click();
    return KEY.exec(text)?.[0] ?? assert.fail('no key is shown');
  }

  /** Waits until the servers have saved a number of served requests of a developer: each does every ten seconds. */
  function untilSaved(developerId: number, requests: number): Promise<unknown> {
    return eventually('the servers have saved what they counted', async () => {
      const days = await readUsageByDay(deployment.db, { developerId });
      return days.reduce((sum, { served }) => sum + served, 0) === requests;
    });
  }

  async function live(javaScript: boolean): Promise<void> {
    const address = javaScript ? '192.0.2.1' : '192.0.2.2';
    const { db } = deployment;
    const { id } = await createDeveloper(db, { projectName: 'Film club', attributionRequired: false });
    const { page, open, assertNoFault, close } = await browser.newPage({ javaScript });
    await open(new URL(await printLink(id)).pathname);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('link', { name: 'Keys' }).first().click();

    await page.getByRole('link', { name: 'Create a key' }).click();
    await page.getByLabel('Label').fill('production');
    await page.getByRole('button', { name: 'Create key' }).click();
    const first = await shownKey(page);
    const firstPrefix = first.slice(0, 12);
    // Often enough that each server has the key in its cache.
    for (let i = 0; i < 2; i += 1) assert.deepEqual(await statusesOf(first, address), [200, 200]);
    // No multiple of what one server has counted.
    assert.equal((await ask(urls[0] ?? '', first, address)).status, 200);
    await untilSaved(id, 5);
    await page.getByRole('link', { name: 'Usage' }).first().click();
    const usage = page.getByRole('group', { name: 'Requests by key' }).locator('tbody tr');
    assert.deepEqual(await usage.locator('th, td').allInnerTexts(), [firstPrefix, 'production', '5', '0', '0', '5']);
    assert.equal(await page.getByLabel('Today').getAttribute('value'), '5');

    await page.getByRole('link', { name: 'Keys' }).first().click();
    await page.getByRole('link', { name: `Roll ${firstPrefix}` }).click();
    await page.getByLabel('1 hour').check();
    await page.getByRole('button', { name: 'Roll key' }).click();
    const second = await shownKey(page);
    const secondPrefix = second.slice(0, 12);
    for (const key of [first, second, second]) assert.deepEqual(await statusesOf(key, address), [200, 200]);

    // The hour goes by in the database alone.
    await expireIn(db, firstPrefix, 0);
    await eventually(
      'each server refuses the old key',
      async () => (await statusesOf(first, address)).join() === '401,401',
    );
    assert.deepEqual(await statusesOf(second, address), [200, 200]);
    await page.reload();
    await page.getByText('Expired', { exact: true }).waitFor();

    await page.getByRole('link', { name: `Revoke ${secondPrefix}` }).click();
    await page.getByRole('button', { name: `Revoke ${secondPrefix}` }).click();
    await page.getByText('has been revoked. Requests with it now fail.').waitFor();
    assert.deepEqual(await statusesOf(second, address), [401, 401]);
    assertNoFault();
    await close();
  }

  it('signs in by the printed link, and creates, uses, rolls and revokes a key, with and without scripts', async () => {
    // At the same time: each waits until the servers have saved what they counted.
    await Promise.all(
      [true, false].map(async (javaScript) => {
        await live(javaScript).catch((error: unknown) => {
          throw new Error(`${javaScript ? 'With' : 'Without'} scripts: ${String(error)}`, { cause: error });
        });
      }),
    );
  }).timeout(90_000);
});
