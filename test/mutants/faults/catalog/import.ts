import type { Fault } from '../../fault.js';

/** Faults in what imports files. */
export const IMPORT_FAULTS: readonly Fault[] = [
  {
    name: 'strict-ignored',
    promise: '--strict stops at the first row that cannot be used.',
    edits: [
      { file: 'src/catalog/import/index.ts', from: 'if (strict) throw', to: 'if (strict && line > 1_000_000) throw' },
    ],
    suites: ['test/import/import.test.ts'],
  },
  {
    name: 'null-becomes-false',
    promise: 'An import keeps what a file says nothing about.',
    edits: [
      {
        file: 'src/catalog/import/merge.ts',
        from: '`coalesce(s.${column.name}, t.${column.name})`',
        to: '`coalesce(s.${column.name}, false)`',
      },
    ],
    suites: ['test/import/import.test.ts'],
  },
  {
    name: 'merge-without-lock',
    promise: 'An import sees the catalogue as it is once it has the lock.',
    edits: [
      {
        file: 'src/catalog/import/merge.ts',
        from: `    await session.query('select public.catalog_lock_writers()');
`,
        to: '',
      },
    ],
    suites: ['test/import/import.test.ts', 'test/import/interruption.test.ts'],
  },
  {
    name: 'tab-not-escaped',
    promise: 'A title with a tab is imported as it is.',
    edits: [
      {
        file: 'src/catalog/import/rows.ts',
        from: 'return cell.replace(COPY_SPECIAL,',
        to: 'return cell.replace(/[\\\\\\n\\r]/g,',
      },
    ],
    suites: ['test/export/round-trip.test.ts', 'test/import/import.test.ts'],
  },
  {
    name: 'long-title-accepted',
    promise: 'A title over 1,000 characters is rejected with its line.',
    edits: [
      { file: 'src/catalog/import/rows.ts', from: 'const LONGEST_TEXT = 1000;', to: 'const LONGEST_TEXT = 10_000;' },
    ],
    suites: ['test/import/import.test.ts'],
  },
  {
    name: 'rejected-not-counted',
    promise: 'Every rejected row is counted and reported.',
    edits: [
      {
        file: 'src/catalog/import/rows.ts',
        from: `    this.rejected++;
    this.#onRejected(line, reason);`,
        to: `    this.rejected++;
    if (this.rejected % 2 === 1) this.#onRejected(line, reason);`,
      },
    ],
    suites: ['test/import/import.test.ts', 'test/import/command.test.ts'],
  },
];
