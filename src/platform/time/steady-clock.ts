/**
 * A clock that never goes back, in milliseconds. Its zero is arbitrary: only differences matter.
 *
 * A monotonic clock is not enough: it stands still while a machine is suspended. This clock therefore adds however much
 * the time of day has gained on it. If the time of day is set back, nothing lasts longer; if it is set ahead, things
 * end early.
 */
export class SteadyClock {
  readonly #origin: number;
  #gained = 0;

  /** @param timeOfDay - in milliseconds since 1970; it may jump @param monotonic - in milliseconds */
  constructor(
    private readonly timeOfDay: () => number = Date.now,
    private readonly monotonic: () => number = () => performance.now(),
  ) {
    this.#origin = timeOfDay() - monotonic();
  }

  now(): number {
    const monotonic = this.monotonic();
    this.#gained = Math.max(this.#gained, this.timeOfDay() - monotonic - this.#origin);
    return monotonic + this.#gained;
  }
}

/** The clock of this process. */
export const STEADY_CLOCK = new SteadyClock();
