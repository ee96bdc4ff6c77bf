import { findPlaces } from './plant.js';
import { FAULTS } from './faults.js';
import { staleness } from './checkout.js';
import { ROOT } from '../support/guides.js';

// Fails if a fault of the table no longer applies to the sources, or one of its suites does not exist.

const places = findPlaces(ROOT);
for (const fault of Object.values(FAULTS).flat()) {
  const stale = staleness(fault, places);
  if (stale === undefined) continue;
  process.stderr.write(`test/mutants/faults.ts: "${fault.fault}": ${stale}\n`);
  process.exitCode = 1;
}
