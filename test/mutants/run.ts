import { fileURLToPath } from 'node:url';
import { ROOT } from '../support/guides.js';
import { CheckoutCopy } from './checkout.js';
import { FAULTS } from './faults.js';

// Plants each fault of the table in a copy of the checkout and runs the suites that must catch it. Prints the result of
// each and exits with code 1 if one is missed. MATCH selects the faults whose name, promise or place contains it.

const { MATCH = '' } = process.env;
const faults = Object.entries(FAULTS).flatMap(([promise, those]) =>
  those.filter(({ fault, of }) => `${promise} ${fault} ${of}`.includes(MATCH)),
);
const copy = await CheckoutCopy.make(fileURLToPath(new URL('.cache/mutants', ROOT)));

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

// A suite that fails without a fault would count as having caught every one.
const failure = await copy.failureIn([...new Set(faults.flatMap(({ suites }) => suites))]);
if (failure !== undefined) {
  print(`The suites fail without any fault: ${failure}`);
  process.exit(1);
}

let missed = 0;
for (const fault of faults) {
  const caughtBy = await copy.try(fault);
  if (caughtBy === undefined) missed += 1;
  print(`${caughtBy === undefined ? 'MISSED ' : 'caught '} ${fault.fault}${caughtBy ? `  (${caughtBy})` : ''}`);
}
print(`${faults.length} faults: ${faults.length - missed} caught, ${missed} missed.`);
process.exitCode = missed > 0 ? 1 : 0;
