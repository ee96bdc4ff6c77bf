import assert from 'node:assert/strict';
import type { Locator } from 'playwright-core';
import { eventually } from '../../support/eventually.js';
import { resize } from '../../support/programs/browser.js';
import type { Stage } from './stage.js';

/** A phone on a mobile network: bytes per second, and milliseconds. */
const SLOW_CONNECTION = { offline: false, latency: 150, downloadThroughput: 200_000, uploadThroughput: 90_000 };

/** Stories of somebody who reads the documentation. */
export function readingStories(stage: Stage): void {
  it('the first call is shown in each language without scripts', async () => {
    const { page, open } = await stage.newProfile({ javaScript: false });
    await open('/');
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

  it('the language that was chosen last is shown by every sample, also on later pages', async () => {
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
    await page.reload();
    assert.equal(await shown.filter({ hasText: 'package main' }).count(), await groups.count());
  });

  it('a remembered language shifts nothing at a deep link on a slow connection', async () => {
    const { page } = await stage.newProfile({ width: 390, height: 844 });
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

  it('a link to a heading leads to it and is copied, and says so also once the page has moved away under the pointer', async () => {
    const { page } = await stage.visit('/docs/guides/mirroring');
    const linkTo = (heading: string): Locator => page.getByRole('link', { name: `Link to ${heading}` });
    const link = linkTo('Start from a copy');
    assert.equal(await link.evaluate((it) => getComputedStyle(it).opacity), '0');
    await link.focus();
    await eventually('it appears', () => link.evaluate((it) => getComputedStyle(it).opacity === '1'));
    await page.keyboard.press('Enter');
    const address = `${stage.service.url}/docs/guides/mirroring#start-from-a-copy`;
    await page.waitForURL(address);
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), address);

    await page.getByRole('heading', { name: 'Follow the feed' }).hover();
    await linkTo('Follow the feed').click();
    await page.mouse.move(0, 0);
    const isSeen = (): Promise<boolean> =>
      linkTo('Follow the feed').evaluate((it) => {
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
      const { page, open } = await stage.visit(path, { width: 1280, height: 500 });
      const marked = page.locator('.sidebar [aria-current="location"]');
      for (const id of ids) {
        await page.locator(`.sidebar a[href="#${id}"]`).click();
        await eventually(`${id} is marked`, async () => (await marked.getAttribute('href')) === `#${id}`);
        assert.equal(await marked.count(), 1);
      }
      await page.goto('about:blank');
      await open(`${path}#${ids[0]}`);
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
    const { page } = await stage.visit('/docs#header-RetryAfter', { width: 1280, height: 1400 });
    const marked = page.locator('.sidebar [aria-current="location"]');
    await eventually('it is marked', async () => (await marked.getAttribute('href')) === '#headers');
  });

  it('an operation shows its sample, its fields and its example responses in this order on a phone, and samples beside fields on a wide screen', async () => {
    const { page } = await stage.visit('/docs', { width: 390, height: 844 });
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
}
