/** How long a value holds, in milliseconds. */
interface Lifetimes {
  readonly valueMs: number;
  /**
   * The same for a failure: short, so that the page recovers soon. Not zero, so that not every request asks during an
   * outage.
   */
  readonly failureMs: number;
}

/** A reading: its value, or undefined where it failed. */
export type Reading<T> = T | undefined;

/**
 * Keeps what a read returned for a bounded time. So requests for pages cost the database nothing, however many they
 * are. Requests that come during a read share it.
 */
export class CachedValue<T> {
  #reading: Promise<Reading<T>> | undefined;
  #expiresAt = 0;

  constructor(
    private readonly read: () => Promise<T>,
    private readonly lifetimes: Lifetimes,
    /** In milliseconds; only differences count. */
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** @returns the value; undefined while it cannot be read. Never rejects */
  get(): Promise<Reading<T>> {
    if (this.#reading === undefined || this.now() >= this.#expiresAt) {
      // Until the read has ended, everyone shares it.
      this.#expiresAt = Infinity;
      this.#reading = this.read().then(
        (value) => {
          this.#expiresAt = this.now() + this.lifetimes.valueMs;
          return value;
        },
        () => {
          this.#expiresAt = this.now() + this.lifetimes.failureMs;
          return undefined;
        },
      );
    }
    return this.#reading;
  }
}
