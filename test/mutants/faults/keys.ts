import type { Fault } from '../fault.js';

/** Faults in what decides whether a key works. */
export const KEYS: readonly Fault[] = [
  {
    promise: 'A request with two different keys is refused.',
    file: 'src/http/credentials.ts',
    from: 'keys.every((other) => other === key)',
    to: 'keys.some((other) => other === key)',
    suites: ['test/api/authentication.test.ts'],
  },
];
