type Close = () => unknown;

/** The open parts of a program. They close together, in the reverse order, since later ones use earlier ones. */
export class CloseStack {
  readonly #closers: Close[] = [];

  /** @param onFailure - reports a part that failed to close; the others close all the more */
  constructor(private readonly onFailure: (error: unknown) => void) {}

  /**
   * Takes over a part that was just opened.
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
