/** Single flight: a request that needs a value which another request is reading waits for that reading. */
export class InFlight {
  readonly #readings = new Map<string, Promise<unknown>>();

  /** @returns resolved when the reading of this name has ended, also when it failed; undefined when there is none */
  get(name: string): Promise<unknown> | undefined {
    return this.#readings.get(name);
  }

  /** Adds a reading until it ends. A name that has a reading in flight keeps that reading. */
  add(name: string, reading: Promise<unknown>): void {
    if (this.#readings.has(name)) return;
    const remove = (): void => void this.#readings.delete(name);
    this.#readings.set(name, reading.then(remove, remove));
  }
}
