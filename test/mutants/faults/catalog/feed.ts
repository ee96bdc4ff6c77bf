import type { Fault } from '../../fault.js';

/** Faults in what makes and reads the feed. */
export const FEED_FAULTS: readonly Fault[] = [
  {
    name: 'stamp-not-unique',
    promise: 'Stamps of a statement are unique and increasing.',
    edits: [
      {
        file: 'db/migrations/011_stamps_with_six_decimals.sql',
        from: `  new.updated_at := timestamptz 'epoch'
    + case`,
        to: `  new.updated_at := clock_timestamp();
  perform case`,
      },
    ],
    suites: ['test/catalog/stamps.test.ts'],
  },
  {
    name: 'no-writers-lock',
    promise: 'Writers commit in the order of their stamps.',
    edits: [
      {
        file: 'db/migrations/005_roles.sql',
        from: `  perform pg_advisory_xact_lock(x'66656564'::integer, 1);
`,
        to: '',
      },
    ],
    suites: ['test/catalog/stamps.test.ts', 'test/catalog/plain-sql.test.ts'],
  },
  {
    name: 'clock-steps-back',
    promise: 'Stamps never step back.',
    edits: [{ file: 'db/migrations/002_catalogue.sql', from: 'greatest(clock, last_value)', to: 'clock' }],
    suites: ['test/catalog/stamps.test.ts', 'test/feed-model/clocks.test.ts'],
  },
  {
    name: 'quiet-although-writing',
    promise: 'A position is moved up only while no writer is at work.',
    edits: [{ file: 'db/migrations/002_catalogue.sql', from: 'and classid = x', to: 'and false and classid = x' }],
    suites: [
      'test/feed-model/quiet.test.ts',
      'test/api/changes/changes-window.test.ts',
      'test/export/position.test.ts',
    ],
  },
  {
    name: 'unchanged-row-is-a-change',
    promise: 'A row that an update leaves as it was is no entry.',
    edits: [
      { file: 'db/migrations/002_catalogue.sql', from: 'if new is not distinct from old then', to: 'if false then' },
    ],
    suites: ['test/catalog/rules.test.ts', 'test/catalog/plain-sql.test.ts', 'test/catalog/stamps.test.ts'],
  },
  {
    name: 'page-skips-one',
    promise: 'The feed shows every entry once.',
    edits: [
      { file: 'src/catalog/feed.ts', from: 'const end = first + PAGE_SIZE;', to: 'const end = first + PAGE_SIZE - 1;' },
    ],
    suites: ['test/api/changes/changes.test.ts'],
  },
  {
    name: 'page-without-more',
    promise: 'has_more is true while entries follow.',
    edits: [{ file: 'src/catalog/feed.ts', from: 'hasMore: rows.length > end', to: 'hasMore: rows.length > end + 1' }],
    suites: ['test/api/changes/changes.test.ts'],
  },
  {
    name: 'since-inclusive',
    promise: 'The feed shows what changed after since.',
    edits: [{ file: 'src/catalog/feed.ts', from: 'while (rows[first]?.updated_at === after) first += 1;', to: '' }],
    suites: ['test/api/changes/changes.test.ts'],
  },
  {
    name: 'window-of-31-days',
    promise: 'A since older than 30 days is refused.',
    edits: [{ file: 'src/catalog/since.ts', from: '30n * 86_400n', to: '31n * 86_400n' }],
    suites: ['test/api/changes/changes-window.test.ts', 'test/catalog/since.test.ts'],
  },
  {
    name: 'since-rounded',
    promise: 'since is exact to the microsecond.',
    edits: [
      {
        file: 'src/catalog/since.ts',
        from: 'return BigInt(digits) * 10n ** BigInt(power);',
        to: 'return (BigInt(digits) * 10n ** BigInt(power)) / 10n * 10n;',
      },
    ],
    suites: ['test/catalog/since.test.ts'],
  },
  {
    name: 'stamp-that-ends-in-0',
    promise: 'A stamp never ends in 0.',
    edits: [
      {
        file: 'db/migrations/011_stamps_with_six_decimals.sql',
        from: `created_at set default (
  timestamptz 'epoch'
    + case nextval('public.titles_last_stamp') % 10`,
        to: `created_at set default (
  timestamptz 'epoch'
    + case nextval('public.titles_last_stamp') % 10000`,
      },
    ],
    suites: ['test/catalog/stamps.test.ts'],
  },
  {
    name: 'rounded-position-trusted',
    promise: 'A mirror whose language loses digits misses nothing.',
    edits: [{ file: 'src/catalog/since.ts', from: 'since - ROUNDED_UP : since', to: 'since : since' }],
    suites: ['test/follow/languages/languages.test.ts'],
  },
  {
    name: 'removal-allowed',
    promise: 'Titles cannot be removed.',
    edits: [
      {
        file: 'db/migrations/002_catalogue.sql',
        from: 'create trigger refuse_removal before delete or truncate on public.titles',
        to: 'create trigger refuse_removal before truncate on public.titles',
      },
    ],
    suites: ['test/catalog/rules.test.ts', 'test/catalog/plain-sql.test.ts'],
  },
  {
    name: 'cursor-past-the-newest-entry',
    promise: 'A position past the newest entry is no cursor: a writer at work may have stamped rows before it.',
    edits: [
      {
        file: 'src/catalog/changes.ts',
        from: '(followsEntry && position === since ? since : undefined)',
        to: '(followsEntry || position === since ? since : undefined)',
      },
    ],
    suites: ['test/api/changes/changes-window.test.ts'],
  },
  {
    name: 'page-before-the-clock',
    promise: 'In the quiet catalogue the clock is read before the page.',
    edits: [
      {
        file: 'src/catalog/changes.ts',
        from: `  const feed = await readFeedClock(db);
  requireWithinWindow(since, now, feed);
  const { entries, hasMore } = await readFeed(db, startOfReading(since, feed));
`,
        to: `  const { entries, hasMore } = await readFeed(db, startOfReading(since, await readBounds(db)));
  const feed = await readFeedClock(db);
  requireWithinWindow(since, now, feed);
`,
      },
    ],
    suites: ['test/api/changes/changes-window.test.ts', 'test/feed-model/quiet.test.ts'],
  },
  {
    name: 'beginning-ignored-by-the-page',
    promise: 'A position from before a restart of the feed is refused.',
    edits: [{ file: 'src/catalog/feed.ts', from: 'beginning <= $1 and ', to: '' }],
    suites: ['test/api/changes/changes-window.test.ts', 'test/catalog/restart.test.ts'],
  },
  {
    name: 'beginning-ignored-by-the-bounds',
    promise: 'A mirror from before a restart of the feed takes a fresh copy.',
    edits: [{ file: 'src/catalog/since.ts', from: 'if (since < start) {', to: 'if (since < 0n) {' }],
    suites: ['test/api/changes/changes-window.test.ts', 'test/catalog/restart.test.ts'],
  },
  {
    name: 'titles-cut-at-commas',
    promise: 'The feed gives each title as it is, whatever characters it has.',
    edits: [
      {
        file: 'src/catalog/feed.ts',
        from: 'json_agg(title)::text as titles',
        to: `'["' || string_agg(title, '","') || '"]' as titles`,
      },
    ],
    suites: ['test/catalog/feed.test.ts'],
  },
];
