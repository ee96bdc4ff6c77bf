import assert from 'node:assert/strict';
import { eventually } from '../../support/eventually.js';
import type { Stage } from './stage.js';

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
  });

  it('a link to a heading appears with the focus, leads to it and is copied', async () => {
    const { page } = await stage.visit('/docs/guides/mirroring');
    const link = page.getByRole('link', { name: 'Link to Start from a copy' });
    assert.equal(await link.evaluate((it) => getComputedStyle(it).opacity), '0');
    await link.focus();
    await eventually('it appears', () => link.evaluate((it) => getComputedStyle(it).opacity === '1'));
    await page.keyboard.press('Enter');
    const address = `${stage.service.url}/docs/guides/mirroring#start-from-a-copy`;
    await page.waitForURL(address);
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), address);
    await eventually('the note is seen', () =>
      link.evaluate((it) => getComputedStyle(it, '::after').content.includes('Link copied')),
    );
  });

  it('the contents mark the part that a link leads to, and keep the mark in view', async () => {
    const { page, open } = await stage.visit('/docs', { width: 1280, height: 500 });
    const marked = page.locator('.sidebar [aria-current="location"]');
    const untilMarked = (id: string): Promise<unknown> =>
      eventually(`${id} is marked`, async () => (await marked.getAttribute('href')) === `#${id}`);
    for (const id of ['paths', 'getMe', 'schemas']) {
      await page.locator(`.sidebar a[href="#${id}"]`).click();
      await untilMarked(id);
      assert.equal(await marked.count(), 1);
    }
    await page.goto('about:blank');
    // A part of a chapter, not the one after it.
    await open('/docs#header-RetryAfter');
    await untilMarked('headers');
    await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
    const last = await page.locator('.sidebar a[href^="#"]').last().getAttribute('href');
    await untilMarked(last?.slice(1) ?? '');
    await eventually('the mark is in view', () =>
      marked.evaluate((link) => {
        const { top, bottom } = link.getBoundingClientRect();
        const view = link.closest('.sidebar')?.getBoundingClientRect();
        return view !== undefined && top >= view.top && bottom <= view.bottom;
      }),
    );
  });
}
