import type { Fault } from '../fault.js';

/** Faults in what keeps roles and servers of the database in their place. */
export const ROLES_FAULTS: readonly Fault[] = [
  {
    name: 'functions-for-everybody',
    promise: 'A role without rights can call no function of the service.',
    edits: [
      {
        file: 'db/migrations/005_roles.sql',
        from: '  public.titles_count_inserted(), public.titles_count_updated(),',
        to: '',
      },
    ],
    suites: ['test/database/roles-upgrade.test.ts'],
  },
  {
    name: 'search-path-of-the-caller',
    promise: 'No impostor in a schema of the caller decides a stamp.',
    edits: [
      {
        file: 'db/migrations/005_roles.sql',
        from: `alter function public.titles_stamp_updated() set search_path = pg_catalog, pg_temp;
`,
        to: '',
      },
    ],
    suites: ['test/roles/impostors.test.ts', 'test/roles/rights.test.ts'],
  },
  {
    name: 'standby-accepted',
    promise: 'A standby in place of the primary is refused.',
    edits: [
      {
        file: 'src/platform/postgres/fence.ts',
        from: 'if (state.is_read_only)',
        to: 'if (state.is_read_only === undefined)',
      },
    ],
    suites: ['test/replica/failover.test.ts'],
  },
];
