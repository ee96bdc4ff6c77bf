import type { Fault } from '../fault.js';

/** Faults in how the requests of keys are counted, saved and shown. */
export const USAGE_FAULTS: readonly Fault[] = [
  {
    name: 'usage-dropped-after-failure',
    promise: 'Usage that could not be written is added to later usage.',
    edits: [{ file: 'src/usage/usage-counter.ts', from: '      row.served += served;\n', to: '' }],
    suites: ['test/usage/usage-counter.test.ts'],
  },
  {
    name: 'usage-locks-in-any-order',
    promise: 'Servers that write the usage of the same keys do not deadlock.',
    edits: [
      { file: 'src/usage/write-usage.ts', from: 'group by 1, 2 order by 1, 2', to: 'group by 1, 2 order by random()' },
    ],
    suites: ['test/usage/usage-counter.test.ts'],
  },
  {
    name: 'usage-lost-at-the-end',
    promise: 'A server that stops saves what it has counted.',
    edits: [
      {
        file: 'src/service/create-service.ts',
        from: 'flushRecords(it, db, log)',
        to: '(flushRecords, it, db, log, undefined)',
      },
    ],
    suites: ['test/usage/servers.test.ts'],
  },
  {
    name: 'usage-formula-in-csv',
    promise: 'No label is a formula in a spreadsheet.',
    edits: [{ file: 'src/usage/daily-usage.ts', from: "'^([-=+@", to: "'^([-+@" }],
    suites: ['test/site/settings/usage.test.ts'],
  },
  {
    name: 'usage-charged-by-looking',
    promise: 'Looking at the usage charges nothing.',
    edits: [
      {
        file: 'src/admission/charge/memory.ts',
        from: 'counter.get(key)',
        to: 'counter.consume(key)',
      },
    ],
    suites: ['test/site/settings/usage.test.ts'],
  },
];
