import assert from 'node:assert/strict';
import { h } from 'preact';
import { render } from 'preact-render-to-string';
import { RelativeTime } from '../../../../src/pages/parts/content/values.js';

const NOW = Date.parse('2026-11-23T12:00:00Z');
const DAY = 86_400;

describe('values on pages', () => {
  it('a time reads as its distance from now, with the exact time for hovering and for screen readers', () => {
    for (const [seconds, text] of [
      [-20, 'just now'],
      [20, 'in less than a minute'],
      [-60, '1 minute ago'],
      [-59 * 60, '59 minutes ago'],
      [-3 * 3_600, '3 hours ago'],
      [DAY - 5, 'in 24 hours'],
      [-2.4 * DAY, '2 days ago'],
      // A lifetime, a moment after the key was created.
      [90 * DAY - 5, 'in 90 days'],
      [365 * DAY - 5, 'in 12 months'],
      [-3 * 365.25 * DAY, '3 years ago'],
    ] as const) {
      const at = new Date(NOW + seconds * 1_000).toISOString();
      const exact = `${at.slice(0, 10)} ${at.slice(11, 16)} UTC`;
      assert.equal(
        render(h(RelativeTime, { at, now: NOW })),
        `<time datetime="${at}" title="${exact}">${text}<span class="visually-hidden">, ${exact}</span></time>`,
      );
    }
    assert.equal(render(h(RelativeTime, { at: null })), 'Never');
  });
});
