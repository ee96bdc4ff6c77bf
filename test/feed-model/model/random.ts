/** Random choices that a seed repeats: Mulberry32, small and good enough for choosing what a writer does. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** From 0 up to but not including 1. */
  readonly real = (): number => {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };

  /** A whole number, both ends included. */
  between(least: number, most: number): number {
    return least + Math.floor(this.real() * (most - least + 1));
  }

  chance(probability: number): boolean {
    return this.real() < probability;
  }

  pick<Value>(values: readonly Value[]): Value {
    const value = values[this.between(0, values.length - 1)];
    if (value === undefined) throw new Error('nothing to pick from');
    return value;
  }

  /** One of several, by weight. */
  weighed<Value>(choices: readonly (readonly [weight: number, value: Value])[]): Value {
    let rest = this.real() * choices.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, value] of choices) {
      rest -= weight;
      if (rest < 0) return value;
    }
    throw new Error('no choices');
  }

  /** A generator of its own for each part, so that one part's choices do not shift another's. */
  part(index: number): Random {
    return new Random(Math.imul(this.#state ^ (index + 1), 0x9e3779b1));
  }
}

/** The seed of this run: MODEL_SEED replays one. */
export const SEED = readSeed();

function readSeed(): number {
  const given = process.env.MODEL_SEED;
  if (given === undefined || given === '') return Math.floor(Math.random() * 2 ** 32);
  if (!/^\d{1,10}$/.test(given)) throw new Error('MODEL_SEED is a whole number');
  return Number(given);
}

/** A test's title: its seed stands in every report. */
export function withSeed(what: string): string {
  return `${what} (MODEL_SEED=${SEED})`;
}
