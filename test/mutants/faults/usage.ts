import type { Fault } from '../fault.js';

/** Faults in how the requests of keys are counted, saved and shown. */
export const USAGE_FAULTS: readonly Fault[] = [
  {
    name: 'usage-added-twice',
    promise: 'A batch of usage counts once, however often it is sent.',
    edits: [{ file: 'src/usage/write-usage.ts', from: ' where w.batch < excluded.batch', to: '' }],
    suites: ['test/usage/usage-counter.test.ts'],
  },
  {
    name: 'usage-dropped-after-failure',
    promise: 'Usage that could not be written is added later.',
    edits: [
      {
        file: 'src/usage/usage-counter.ts',
        from: '      await writeUsage(db, this.#writer, batch.number, batch.rows);\n      sent += batch.rows.length;\n      this.#batches.shift();',
        to: '      this.#batches.shift();\n      await writeUsage(db, this.#writer, batch.number, batch.rows);\n      sent += batch.rows.length;',
      },
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
        file: 'src/admission/charge/process-limiter.ts',
        from: "return { quotas: await this.#find(request), countedIn: 'process' };",
        to: "return { quotas: (await this.charge(request)).quotas, countedIn: 'process' };",
      },
    ],
    suites: ['test/site/settings/usage.test.ts'],
  },
];
