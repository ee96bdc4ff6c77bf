type Close = () => unknown;

/** Parts of a program that are open. They are closed together, in the reverse order, since later ones use earlier ones. */
export class OpenParts {
  readonly #closers: Close[] = [];

  /** @param onFailure - reports that a part failed to close, which keeps no other part open */
  constructor(private readonly onFailure: (error: unknown) => void) {}

  /**
   * Takes over a part that has just been opened.
   *
   * @param close - closes the part, in bounded time
   * @returns the part
   */
  add<Part>(part: Part, close: (part: Part) => unknown): Part {
    this.#closers.push(() => close(part));
    return part;
  }

  /** Closes every part that is still open. Never rejects. */
  async close(): Promise<void> {
    for (let close = this.#closers.pop(); close !== undefined; close = this.#closers.pop()) {
      try {
        await close();
      } catch (error) {
        this.onFailure(error);
      }
    }
  }
}
