import assert from 'node:assert/strict';

/**
 * Counts what a suite has to try again because the machine was too slow for it. What flaps by itself would hide behind
 * retries, so that more than a few in a suite are a failure.
 */
export class Retries {
  #count = 0;

  /** @param most - retries of the whole suite that a slow machine parameterErrors */
  constructor(
    private readonly what: string,
    private readonly most = 2,
  ) {}

  /**
   * Notes one more retry.
   *
   * @param cause - why it is needed
   * @throws AssertionError when there are too many
   */
  note(cause: unknown): void {
    this.#count += 1;
    console.log(`      tried again (${this.#count} of at most ${this.most}): ${this.what}`);
    assert.ok(this.#count <= this.most, new Error(`too many retries: ${this.what}`, { cause }));
  }
}
