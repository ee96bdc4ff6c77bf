// What tests of chance share: the seed of their random plans, and how much they do.

/** The seed of this run. MODEL_SEED repeats the plan of another. */
export const SEED = Number(process.env.MODEL_SEED ?? Math.floor(Math.random() * 2 ** 31));

/** How many times as much a test of chance does as in `make test`. Releases have `make lab` with LONG=20. */
export const LONG = Number(process.env.LONG ?? 1);

/** Adds the seed to a test's title, so that every report has it. */
export function withSeed(title: string): string {
  return `${title} (MODEL_SEED=${SEED})`;
}
