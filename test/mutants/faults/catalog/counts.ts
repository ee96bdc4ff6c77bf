import type { Fault } from '../../fault.js';

/** Faults in what counts the catalogue. */
export const COUNTS_FAULTS: readonly Fault[] = [
  {
    name: 'series-counted-as-movies',
    promise: 'The counts of /stats are right.',
    edits: [
      {
        file: 'db/migrations/003_counts.sql',
        from: "count(*) filter (where media_type = 'series')",
        to: "count(*) filter (where media_type = 'movie')",
      },
    ],
    suites: ['test/catalog/counts.test.ts'],
  },
  {
    name: 'updates-not-counted',
    promise: 'The counts follow an update.',
    edits: [
      { file: 'db/migrations/003_counts.sql', from: "  if added <> '{0,0,0,0,0,0}' then", to: '  if false then' },
    ],
    suites: ['test/catalog/counts.test.ts'],
  },
  {
    name: 'waiting-counts-lost',
    promise: 'Counts of a transaction with many statements are added up.',
    edits: [{ file: 'db/migrations/005_roles.sql', from: '  if total[1] is not null then', to: '  if false then' }],
    suites: ['test/catalog/counts.test.ts'],
  },
  {
    name: 'verify-finds-nothing',
    promise: 'stats verify finds a wrong counter.',
    edits: [{ file: 'src/catalog/counts.ts', from: 'filter(', to: 'filter((_: unknown, i: number) => i < 0).filter(' }],
    suites: ['test/catalog/counts.test.ts'],
  },
];
