// What tests of chance share: the seed of their random plans, what it draws, and how much they do.

import fc from 'fast-check';

/** The seed of this run. The environment variable SEED repeats the plan of another. */
export const SEED = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));

/** How many times as much a test of chance does as in `make test`. Before a version, run `make lab` with LONG=20. */
export const LONG = Number(process.env.LONG ?? 1);

/** Adds the seed to a test's title, so that every report has it. */
export function withSeed(title: string): string {
  return `${title} (SEED=${SEED})`;
}

/** Draws one value. The same seed gives the same value. */
export function sample<T>(seed: number, values: fc.Arbitrary<T>): T {
  const [value] = fc.sample(fc.noBias(values), { seed, numRuns: 1 });
  return value as T;
}
