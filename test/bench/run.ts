import { tmpdir } from 'node:os';
import { benchBeside } from './beside/index.js';
import { benchCatchingUp } from './catching-up.js';
import { benchCosts } from './costs.js';
import { print } from './measure.js';
import { benchSizes } from './sizes.js';

// Measures the figures of the performance guide, on a PostgreSQL and a Redis of its own, which stop when this process
// exits. Arguments name the parts to run, by default all. Environment variables make them smaller.

// Not in /dev/shm: a database there would not wait for a disk.
process.env.TMPDIR ??= tmpdir();

/** A part of the benchmark. */
interface Part {
  /** @returns whether all its goals were met; anything else if it has none */
  readonly run: () => Promise<unknown>;
  /** Whether a missed goal is a failure. Ratios of two measurements are too fickle on a shared machine to fail by. */
  readonly isDecisive: boolean;
}

const rounds = numberIn('ROUNDS', 5);
const seconds = numberIn('SECONDS', 5);
const titles = numberIn('TITLES', 1_000_000);
const sizes = (process.env.SIZES ?? '10000 100000 1000000 10000000').split(' ').map((size) => positive('SIZES', size));

const PARTS: Readonly<Record<string, Part>> = {
  sizes: { isDecisive: true, run: () => benchSizes(sizes, seconds) },
  beside: {
    isDecisive: false,
    run: () => benchBeside(numberIn('KEYS', 1_000_000), numberIn('ACTIVE', 20_000)),
  },
  catchup: { isDecisive: false, run: () => benchCatchingUp(titles, rounds, seconds) },
  costs: { isDecisive: false, run: () => benchCosts(titles, rounds, seconds) },
};

function numberIn(variable: string, fallback: number): number {
  return positive(variable, process.env[variable] ?? fallback);
}

function positive(variable: string, text: string | number): number {
  const value = Number(text);
  if (!(value > 0)) throw new Error(`${variable}: ${text} is not a number above 0`);
  return value;
}

const named = process.argv.slice(2);
const unknown = named.filter((name) => !(name in PARTS));
if (unknown.length > 0) throw new Error(`No such part: ${unknown.join()}. There are ${Object.keys(PARTS).join()}`);
let isMet = true;
let hasFailed = false;
// In the order above, whatever the order in which they are named.
for (const [name, part] of Object.entries(PARTS)) {
  if (named.length > 0 && !named.includes(name)) continue;
  const isPartMet = (await part.run()) !== false;
  isMet &&= isPartMet;
  hasFailed ||= part.isDecisive && !isPartMet;
}
print(isMet ? '\nAll goals were met.\n' : '\nNot all goals were met.\n');
process.exit(hasFailed ? 1 : 0);
