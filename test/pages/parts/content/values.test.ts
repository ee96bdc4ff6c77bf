import assert from 'node:assert/strict';
import { h } from 'preact';
import { render } from 'preact-render-to-string';
import { RelativeTime } from '../../../../src/pages/parts/content/components.js';
import { formatRelative } from '../../../../src/platform/time/relative-time.js';

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
      assert.equal(formatRelative(at, NOW), text);
    }
    assert.match(
      render(h(RelativeTime, { at: '2026-11-23T12:00:00Z' })),
      /^<time datetime="2026-11-23T12:00:00Z" title="2026-11-23 12:00 UTC">.+>, 2026-11-23 12:00 UTC<\/span><\/time>$/,
    );
    assert.equal(render(h(RelativeTime, { at: null })), 'Never');
  });
});
