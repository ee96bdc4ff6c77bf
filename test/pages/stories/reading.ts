import assert from 'node:assert/strict';
import { createKey } from '../../../src/keys/keys.js';
import { eventually } from '../../support/eventually.js';
import type { Stage } from './stage.js';

const PHONE = { width: 390, height: 844 };

/** Stories of somebody who reads the documentation. */
export function readingStories(stage: Stage): void {
  it('the language that was chosen last is shown by every sample and guide, also on later pages', async () => {
    const { page, open } = await stage.newProfile();
    await open('/');
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
    await page.goto('/docs/guides/following-the-feed');
    const tabs = page.locator('.prose [data-remember="language"]').first();
    assert.deepEqual(await tabs.locator('> label').allInnerTexts(), ['JavaScript', 'Python', 'PHP', 'Go']);
    assert.ok((await tabs.locator('.tab-panel:visible').innerText()).includes('package main'));
    await tabs.getByText('PHP', { exact: true }).first().click();
    await page.goto('/docs');
    assert.equal(await shown.filter({ hasText: '<?php' }).count(), await groups.count());
  });

  it('the theme that was chosen is shown on later pages too, and the font of the site is loaded', async () => {
    const { page, open } = await stage.newProfile();
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    await open('/');
    const before = await background();
    await page.getByLabel('Theme').selectOption('dark');
    await page.goto('/status');
    const dark = await background();
    assert.notEqual(dark, before);
    await page.getByLabel('Theme').selectOption('');
    assert.equal(await background(), before);
    await eventually('the font is loaded', () =>
      page.evaluate(() =>
        [...document.fonts].some(({ family, status }) => /Sans 3"?$/.test(family) && status === 'loaded'),
      ),
    );
  });

  it('a touch shows the exact time beside a relative one', async () => {
    const { page, open } = await stage.newProfile();
    await open('/');
    const time = page.locator('time[title]').first();
    const width = async (): Promise<number> => (await time.locator('span').boundingBox())?.width ?? 0;
    assert.ok((await width()) <= 1);
    await time.click();
    assert.ok((await width()) > 1);
  });

  it('a link to a heading appears with the focus and leads to it', async () => {
    const { page } = await stage.visit('/docs/guides/following-the-feed');
    const link = page.getByRole('link', { name: 'Link to Start from a copy' });
    assert.equal(await link.evaluate((it) => getComputedStyle(it).opacity), '0');
    await link.focus();
    await eventually('it appears', () => link.evaluate((it) => getComputedStyle(it).opacity === '1'));
    await page.keyboard.press('Enter');
    await page.waitForURL('**/docs/guides/following-the-feed#start-from-a-copy');
  });

  it('the contents mark the part that a link leads to, and keep the mark in view', async () => {
    const { page, open } = await stage.visit('/docs', { width: 1280, height: 500 });
    const marked = page.locator('.sidebar [aria-current="location"]');
    const untilMarked = (id: string): Promise<unknown> =>
      eventually(`${id} is marked`, async () => (await marked.getAttribute('href')) === `#${id}`);
    for (const id of ['errors', 'getMe', 'schemas']) {
      await page.locator(`.sidebar a[href="#${id}"]`).click();
      await untilMarked(id);
      assert.equal(await marked.count(), 1);
    }
    await page.goto('about:blank');
    // A part of a chapter, not the one after it.
    await open('/docs#header-RetryAfter');
    await untilMarked('headers');
    await eventually('the mark is in view', () =>
      marked.evaluate((link) => {
        const { top, bottom } = link.getBoundingClientRect();
        const view = link.closest('.sidebar')?.getBoundingClientRect();
        return view !== undefined && top >= view.top && bottom <= view.bottom;
      }),
    );
  });

  it('Ctrl+K leads to the field in the header of every page, on a narrow screen to that of the page of results', async () => {
    for (const view of [{}, PHONE]) {
      const { page, assertNoFault } = await stage.visit('/revoke-leaked-key', view);
      await page.keyboard.press('Control+k');
      if (view === PHONE) await page.waitForURL('**/docs/search?q=');
      await page.getByRole('searchbox').and(page.locator(':focus')).waitFor();
      await page.keyboard.type('has/more');
      await page.keyboard.press('Enter');
      await page.waitForURL('**/docs/search?q=has%2Fmore');
      assertNoFault();
    }
  });

  it('results follow what is typed, are counted aloud and have their own address, and the form is sent where that fails', async () => {
    const { page, assertNoFault } = await stage.visit('/docs/search?q=limits');
    const field = page.getByRole('searchbox');
    const count = page.getByRole('status');
    const shows = (text: string): Promise<unknown> => count.filter({ hasText: text }).waitFor();
    await count.evaluate((it) => (it.dataset.same = ''));
    await field.press('End');
    await field.pressSequentially(' zzzz');
    await shows('Nothing contains “zzzz”');
    await page.route('**/docs/search?q=late', () => undefined);
    const outrun = page.waitForEvent('requestfailed', (request) => request.url().endsWith('q=late'));
    await field.fill('late');
    await field.fill('has_more');
    await outrun;
    await page.getByRole('link', { name: 'has_more field' }).waitFor();
    await shows('for “has_more”');
    // A screen reader announces a change of an element that was there.
    assert.ok(await count.evaluate((it) => 'same' in it.dataset));
    await page.waitForURL('**/docs/search?q=has_more');
    assertNoFault();
    const { key } = await createKey(stage.service.db, { developerId: stage.developerId, planId: 'free' });
    const sent: string[] = [];
    page.on('request', (request) => sent.push(request.url()));
    await field.fill(key);
    await shows('That looks like an API key');
    assert.deepEqual([sent.length > 0, sent.filter((url) => url.includes(key))], [true, []]);
    await page.waitForURL('**/docs/search?key-refused');
    await page.route('**/docs/search?**', (route) => route.abort());
    await field.fill('cache');
    await shows('Press Enter to search.');
    await page.unroute('**/docs/search?**');
    await field.press('Enter');
    await shows('for “cache”');
  });

  it('a result that is folded is unfolded and brought into view, and a malformed address has no target', async () => {
    const { page, open, assertNoFault } = await stage.visit('/docs/guides#%E0%A4%A');
    assertNoFault();
    await open('/docs/search?q=oldest_since');
    await page.getByRole('link', { name: 'oldest_since field · Problem' }).click();
    const field = page.locator('#schema-Problem-oldest_since');
    await field.getByText('will be accepted for another minute').waitFor();
    assert.ok(((await field.boundingBox())?.y ?? -1) > 0);
  });

  it('on a phone, the contents stay at the top of a long page, and close once they are used', async () => {
    const { page, assertNoFault } = await stage.visit('/docs#getTitle', PHONE);
    const bar = page.locator('.sidebar');
    const topOf = async (id: string): Promise<number> => (await page.locator(`#${id}`).boundingBox())?.y ?? NaN;
    const bottom = async (): Promise<number> => {
      const { y, height } = (await bar.boundingBox()) ?? assert.fail();
      assert.equal(y, 0);
      return height;
    };
    assert.ok((await topOf('getTitle')) >= (await bottom()), 'the bar covers the target');
    await bar.getByText('Contents').click();
    await bar.locator('[aria-current="location"]', { hasText: 'Look up a title' }).waitFor();
    await bar.getByRole('link', { name: 'Schemas' }).click();
    await page.locator('.sidebar-links').waitFor({ state: 'hidden' });
    await page.waitForURL('**/docs#schemas');
    assert.ok((await topOf('schemas')) >= (await bottom()));
    assertNoFault();
  });
}
