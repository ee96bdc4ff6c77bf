import type { Fault } from '../../fault.js';

/** Faults in what exports the catalogue. */
export const EXPORT_FAULTS: readonly Fault[] = [
  {
    name: 'position-too-late',
    promise: 'A mirror that begins with an export misses nothing.',
    edits: [
      {
        file: 'src/catalog/changes.ts',
        from: 'const position = withinWindow(newest ?? 0n, now);',
        to: 'const position = withinWindow(newest === undefined ? 0n : newest + 1_000_000n, now);',
      },
    ],
    suites: ['test/export/position.test.ts', 'test/export/mirror.test.ts'],
  },
  {
    name: 'snapshot-per-statement',
    promise: 'An export is of one moment.',
    edits: [
      {
        file: 'src/catalog/export.ts',
        from: 'begin isolation level repeatable read read only',
        to: 'begin isolation level read committed read only',
      },
    ],
    suites: ['test/export/position.test.ts'],
  },
];
