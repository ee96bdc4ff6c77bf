/**
 * A clock that never goes back, in milliseconds. What it counts from means nothing.
 *
 * The monotonic clock alone would not do: it stands still while a machine is suspended. This clock therefore adds
 * what the time of day has gained on it. When somebody sets the time of day back, nothing lasts longer. When somebody
 * sets it ahead, things end early.
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
