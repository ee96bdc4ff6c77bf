import { fileURLToPath } from 'node:url';
import { ROOT } from '../support/guides.js';
import { CheckoutCopy } from './checkout.js';
import type { Fault } from './fault.js';
import { FAULTS } from './faults/index.js';

// Plants each fault of the table in a copy of the checkout, and runs the suites that must notice it. Prints which faults were
// caught. Ends with exit code 1 where too few are. MATCH takes only faults whose name or promise has that text. JOBS says how
// many copies work at the same time.

/** The part of all faults that must be caught. */
const GOAL = 0.95;

const COPIES = fileURLToPath(new URL('.cache/mutants', ROOT));

const { MATCH = '', JOBS = '2' } = process.env;
const faults = FAULTS.filter(({ name, promise }) => `${name} ${promise}`.includes(MATCH));

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

const jobs = Math.max(1, Math.min(Number(JOBS) || 1, faults.length));
const copies = await Promise.all(Array.from({ length: jobs }, (_, place) => CheckoutCopy.make(`${COPIES}/${place}`)));

// What fails anyway would count as caught.
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
      const noticed = await copy.try(fault);
      if (noticed === undefined) missed.push(fault);
      print(noticed === undefined ? `MISSED  ${fault.name}: ${fault.promise}` : `caught  ${fault.name}  (${noticed})`);
    }
  }),
);

const caught = faults.length - missed.length;
print(`${faults.length} faults: ${caught} caught, ${missed.length} missed. At least ${GOAL * 100} % must be caught.`);
process.exitCode = caught >= GOAL * faults.length ? 0 : 1;
