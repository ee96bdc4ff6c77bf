/** The open parts of a program. They close together, in the reverse order, since later ones use earlier ones. */
export class CloseStack {
  readonly #closers: (() => unknown)[] = [];

  /** @param onFailure - reports a part that failed to close; the others still close */
  constructor(private readonly onFailure: (error: unknown) => void) {}

  /**
   * Opens a program from parts. When that fails half-way, the parts that are open are closed.
   *
   * @param open - adds each part to the stack
   * @param onFailure - reports a part that failed to close
   * @throws the error of `open`
   */
  static async open<T>(open: (opened: CloseStack) => Promise<T>, onFailure: (error: unknown) => void): Promise<T> {
    const opened = new CloseStack(onFailure);
    try {
      return await open(opened);
    } catch (error) {
      await opened.close();
      throw error;
    }
  }

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
