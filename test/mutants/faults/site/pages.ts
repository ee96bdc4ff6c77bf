import type { Fault } from '../../fault.js';

const KEYS = 'test/site/settings/keys.test.ts';
const TRAFFIC = 'test/site/page-traffic.test.ts';

/** Faults in the pages for people. */
export const PAGES_FAULTS: readonly Fault[] = [
  {
    name: 'site-in-a-frame',
    promise: 'No other site can put a page into a frame.',
    edits: [{ file: 'src/site/delivery/headers.ts', from: '  "frame-ancestors \'none\'",\n', to: '' }],
    suites: ['test/site/site.test.ts'],
  },
  {
    name: 'site-label-as-html',
    promise: 'A label is text, whatever it holds.',
    edits: [
      {
        file: 'src/site/layout/values.tsx',
        from: '<bdi>{harmless(text)}</bdi>',
        to: '<bdi dangerouslySetInnerHTML={{ __html: harmless(text) }} />',
      },
    ],
    suites: [KEYS],
  },
  {
    name: 'site-name-turns-the-page',
    promise: 'The direction of a name does not reach the text around it.',
    edits: [
      {
        file: 'src/site/layout/values.tsx',
        from: '<bdi>{harmless(text)}</bdi>',
        to: '<span>{text}</span>',
      },
    ],
    suites: [KEYS],
  },
  {
    name: 'site-page-kept-by-caches',
    promise: 'No cache keeps a page behind sign-in.',
    edits: [
      {
        file: 'src/site/layout/page.tsx',
        from: "'Cache-Control': 'no-store'",
        to: "'Cache-Control': 'private, max-age=60'",
      },
    ],
    suites: [KEYS],
  },
  {
    name: 'site-usage-kept-by-caches',
    promise: 'No cache keeps what a developer downloads.',
    edits: [{ file: 'src/site/settings/guards.ts', from: "  ctx.set('Cache-Control', 'no-store');\n", to: '' }],
    suites: ['test/site/settings/usage.test.ts'],
  },
  {
    name: 'site-recent-for-a-day',
    promise: 'A change of keys needs a sign-in of the last 15 minutes.',
    edits: [
      { file: 'src/accounts/sessions.ts', from: 'const RECENT_MINUTES = 15;', to: 'const RECENT_MINUTES = 1440;' },
    ],
    suites: [KEYS],
  },
  {
    name: 'site-takes-the-database',
    promise: 'Requests for pages leave the API its connections to the database.',
    edits: [{ file: 'src/site/site.ts', from: 'running: 3,', to: 'running: 1000,' }],
    suites: [TRAFFIC],
  },
  {
    name: 'site-for-one-address',
    promise: 'Requests for pages from one address leave others their pages.',
    edits: [{ file: 'src/http/request/concurrency.ts', from: 'points: perAddress', to: 'points: 1e9' }],
    suites: [TRAFFIC],
  },
  {
    name: 'site-events-for-ever',
    promise: 'Events are kept for 400 days.',
    edits: [{ file: 'db/migrations/010_event_retention.sql', from: "interval '400 days'", to: "interval '4000 days'" }],
    suites: ['test/events/events.test.ts'],
  },
];
