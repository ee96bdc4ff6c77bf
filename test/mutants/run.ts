import { fileURLToPath } from 'node:url';
import { ROOT } from '../support/guides.js';
import { CheckoutCopy } from './checkout.js';
import { readFaults, type Fault } from './fault.js';

// Plants each fault of the table in a copy of the checkout and runs the suites that must catch it. Prints the result of each
// and exits with code 1 if too few are caught. MATCH selects the faults whose name or promise contains it; JOBS is the number
// of copies that work at the same time.

/** The share of the faults that must be caught. */
const GOAL = 0.95;

const COPIES = fileURLToPath(new URL('.cache/mutants', ROOT));

const { MATCH = '', JOBS = '2' } = process.env;
const faults = (await readFaults()).filter(({ name, promise }) => `${name} ${promise}`.includes(MATCH));

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

const jobs = Math.max(1, Math.min(Number(JOBS) || 1, faults.length));
const copies = await Promise.all(Array.from({ length: jobs }, (_, place) => CheckoutCopy.make(`${COPIES}/${place}`)));

// A suite that fails without a fault would count as having caught every one.
const failure = await copies[0]?.failureInAll([...new Set(faults.flatMap(({ suites }) => suites))]);
if (failure !== undefined) {
  print(`The suites fail without any fault: ${failure}`);
  process.exit(1);
}

const missed: Fault[] = [];
const waiting = faults.values();
await Promise.all(
  copies.map(async (copy) => {
    for (const fault of waiting) {
      const caughtBy = await copy.try(fault);
      if (caughtBy === undefined) missed.push(fault);
      print(
        caughtBy === undefined ? `MISSED  ${fault.name}: ${fault.promise}` : `caught  ${fault.name}  (${caughtBy})`,
      );
    }
  }),
);

const caught = faults.length - missed.length;
print(`${faults.length} faults: ${caught} caught, ${missed.length} missed. At least ${GOAL * 100} % must be caught.`);
process.exitCode = caught >= GOAL * faults.length ? 0 : 1;
