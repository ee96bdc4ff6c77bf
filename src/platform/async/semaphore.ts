/**
 * Bounds how many tasks run at the same time. The others wait. Owners take turns, however many tasks each has waiting; the
 * tasks of one owner start in the order of their arrival.
 */
export class Semaphore {
  #free: number;
  /** By owner; the owner whose turn it is comes first. No list is empty. */
  readonly #waiting = new Map<string, (() => void)[]>();

  /** @param permits - how many tasks may run at the same time */
  constructor(permits: number) {
    this.#free = permits;
  }

  /** Takes a permit, as soon as one is free. The task returns it by {@link release}. @param owner - whose task it is */
  async acquire(owner = ''): Promise<void> {
    if (this.#free > 0) {
      this.#free -= 1;
      return;
    }
    const waiting = this.#waiting.get(owner) ?? [];
    this.#waiting.set(owner, waiting);
    await new Promise<void>((resolve) => waiting.push(resolve));
  }

  /** Returns a permit: to the next task, if any waits. */
  release(): void {
    const [turn] = this.#waiting;
    if (turn === undefined) {
      this.#free += 1;
      return;
    }
    const [owner, waiting] = turn;
    const next = waiting.shift();
    this.#waiting.delete(owner);
    if (waiting.length > 0) this.#waiting.set(owner, waiting);
    next?.();
  }
}
