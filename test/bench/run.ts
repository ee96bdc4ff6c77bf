import { benchIdle } from './idle/index.js';
import { benchImport } from './import.js';
import { print } from './measure.js';
import { benchReads } from './reads.js';
import { benchSpeed, CASE_NAMES } from './speed/index.js';
import { benchWrites } from './writes.js';

// Measures what the README says about size and speed, on a PostgreSQL and a Redis of its own, which go away with this
// process. Arguments name the parts to run; all run by default. The environment may make them smaller.

const IMPORT_ROWS = numberIn('IMPORT_ROWS', 1_000_000);
const READ_SIZES = (process.env.READ_SIZES ?? '10000 1000000 10000000').split(' ').map(Number);
const READ_SECONDS = numberIn('READ_SECONDS', 60);
const WRITE_SECONDS = numberIn('WRITE_SECONDS', 60);

/** A part of the benchmark. */
interface Part {
  /** @returns whether all its goals were met */
  readonly run: () => Promise<boolean>;
  /** Whether a missed goal is a failure, or for information. */
  readonly isDecisive: boolean;
}

const PARTS: Readonly<Record<string, Part>> = {
  import: { isDecisive: true, run: () => benchImport(IMPORT_ROWS) },
  reads: { isDecisive: true, run: () => benchReads(READ_SIZES, READ_SECONDS) },
  writes: {
    isDecisive: true,
    run: async () => {
      await benchWrites(WRITE_SECONDS);
      return true;
    },
  },
  // The last two keep this process off one core. Their goals are ratios of two measurements, too fickle on a shared machine
  // to fail by.
  speed: {
    isDecisive: false,
    run: () =>
      benchSpeed({
        titles: numberIn('TITLES', 1_000_000),
        cases: process.env.CASES?.split(/[ ,]+/) ?? CASE_NAMES,
        rounds: numberIn('ROUNDS', 5),
        seconds: numberIn('SECONDS', 3),
        requests: numberIn('REQUESTS', 1_000_000),
        isProfiled: process.env.PROFILE === '1',
        out: process.env.OUT ?? '.cache/bench.json',
      }),
  },
  idle: {
    isDecisive: false,
    run: () =>
      benchIdle({
        connections: numberIn('CONNECTIONS', 10_000),
        rounds: numberIn('ROUNDS', 5),
        seconds: numberIn('SECONDS', 3),
        out: process.env.IDLE_OUT ?? '.cache/bench-idle.json',
      }),
  },
};

function numberIn(variable: string, fallback: number): number {
  const value = Number(process.env[variable] ?? fallback);
  if (!(value > 0)) throw new Error(`${variable} must be a number above 0`);
  return value;
}

const names = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(PARTS);
let isMet = true;
let hasFailed = false;
for (const name of names) {
  const part = PARTS[name];
  if (part === undefined) throw new Error(`There is no part ${name}: there are ${Object.keys(PARTS).join(', ')}`);
  const isPartMet = await part.run();
  isMet &&= isPartMet;
  hasFailed ||= part.isDecisive && !isPartMet;
}
print(isMet ? '\nAll goals were met.\n' : '\nNot all goals were met.\n');
process.exit(hasFailed ? 1 : 0);
