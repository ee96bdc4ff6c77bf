import { tmpdir } from 'node:os';
import { benchCompression } from './compression.js';
import { benchCosts } from './costs.js';
import { benchGrowth, drawGrowth, type GrowthOptions } from './growth/index.js';
import { benchIdle } from './idle/index.js';
import { benchImport } from './import.js';
import { print } from './measure.js';
import { measureReads, printReads } from './reads.js';
import { CASE_NAMES } from './speed/cases.js';
import { benchSpeed } from './speed/index.js';
import { benchWrites } from './writes.js';

// Measures what the performance guide says about size and speed. Its PostgreSQL and its Redis are its own, and end with this
// process. Arguments name the parts to run; all but growth run by default. The environment may make them smaller.

// Not in /dev/shm: a database there would not wait for a disk.
process.env.TMPDIR ??= tmpdir();

const IMPORT_ROWS = numberIn('IMPORT_ROWS', 1_000_000);
const READ_SECONDS = numberIn('READ_SECONDS', 60);
const WRITE_SECONDS = numberIn('WRITE_SECONDS', 60);

/** A part of the benchmark. */
interface Part {
  /** @returns whether all its goals were met */
  readonly run: () => Promise<boolean>;
  /** Whether a missed goal is a failure, or for information. */
  readonly isDecisive: boolean;
  /** Whether it runs only when it is named. */
  readonly isOptional?: boolean;
}

const PARTS: Readonly<Record<string, Part>> = {
  import: { isDecisive: true, run: () => benchImport(IMPORT_ROWS) },
  reads: {
    isDecisive: true,
    run: async () => printReads(await measureReads(numbersIn('READ_SIZES', '10000 1000000 10000000'), READ_SECONDS)),
  },
  writes: {
    isDecisive: true,
    run: async () => {
      await benchWrites(WRITE_SECONDS);
      return true;
    },
  },
  compression: {
    isDecisive: false,
    run: async () => {
      await benchCompression({
        titles: numberIn('TITLES', 20_000),
        rounds: numberIn('ROUNDS', 5),
        seconds: numberIn('SECONDS', 3),
        pages: process.env.PAGES?.split(/[ ,]+/) ?? [],
      });
      return true;
    },
  },
  costs: {
    isDecisive: false,
    run: async () => {
      await benchCosts({
        titles: numberIn('TITLES', 1_000_000),
        rounds: numberIn('ROUNDS', 5),
        seconds: numberIn('SECONDS', 3),
      });
      return true;
    },
  },
  // It writes into the sources: the charts of the performance guide, and what they are drawn from.
  growth: {
    isDecisive: true,
    isOptional: true,
    run: async () => {
      if (process.env.DRAW !== '1') return benchGrowth(growthOptions());
      await drawGrowth();
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
        cases: wordsIn('CASES') ?? CASE_NAMES,
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

function growthOptions(): GrowthOptions {
  return {
    sizes: numbersIn('READ_SIZES', '10000 100000 1000000 10000000'),
    readSeconds: READ_SECONDS,
    titles: numberIn('TITLES', 1_000_000),
    workers: numbersIn('WORKER_COUNTS', '1 2 3 4'),
    cases: wordsIn('CASES') ?? ['me', 'stats', 'changes'],
    rounds: numberIn('ROUNDS', 5),
    seconds: numberIn('SECONDS', 3),
  };
}

function numberIn(variable: string, fallback: number): number {
  return positive(variable, process.env[variable] ?? fallback);
}

function numbersIn(variable: string, fallback: string): number[] {
  return (wordsIn(variable) ?? fallback.split(' ')).map((word) => positive(variable, word));
}

function positive(variable: string, text: string | number): number {
  const value = Number(text);
  if (!(value > 0)) throw new Error(`${variable}: ${text} is not a number above 0`);
  return value;
}

function wordsIn(variable: string): string[] | undefined {
  return process.env[variable]?.split(/[ ,]+/);
}

const named = process.argv.slice(2);
const unknown = named.filter((name) => !(name in PARTS));
if (unknown.length > 0) throw new Error(`No such part: ${unknown.join()}. There are ${Object.keys(PARTS).join()}`);
let isMet = true;
let hasFailed = false;
// In the order above, whatever the order in which they are named.
for (const [name, part] of Object.entries(PARTS)) {
  if (named.length > 0 ? !named.includes(name) : part.isOptional) continue;
  const isPartMet = await part.run();
  isMet &&= isPartMet;
  hasFailed ||= part.isDecisive && !isPartMet;
}
print(isMet ? '\nAll goals were met.\n' : '\nNot all goals were met.\n');
process.exit(hasFailed ? 1 : 0);
