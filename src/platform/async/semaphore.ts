/** Bounds how many tasks run at the same time. The others wait, and start in the order of their arrival. */
export class Semaphore {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  /** @param permits - how many tasks may run at the same time */
  constructor(permits: number) {
    this.#free = permits;
  }

  /** Takes a permit, as soon as one is free. The task returns it by {@link release}. */
  async acquire(): Promise<void> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** Returns a permit: to the task that has waited longest, if any. */
  release(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }
}
