const HEAD_END = '\r\n\r\n';
const LENGTH = /\r\ncontent-length: (\d+)/i;
const STATUS_AT = 'HTTP/1.1 '.length;

/** Reads as much of the answers on one connection as it takes to know where each one ends. They give their length. */
export class AnswerReader {
  #head = '';
  #status = 0;
  /** Bytes of the body still to come; undefined before the head is complete. */
  #left: number | undefined;

  /** @returns the status when these bytes complete an answer */
  read(bytes: Buffer): number | undefined {
    if (this.#left === undefined) {
      // One character a byte.
      this.#head += bytes.toString('latin1');
      const end = this.#head.indexOf(HEAD_END);
      if (end < 0) return undefined;
      const head = this.#head.slice(0, end);
      this.#status = Number(head.slice(STATUS_AT, STATUS_AT + 3));
      this.#left = Number(LENGTH.exec(head)?.[1] ?? 0) - (this.#head.length - end - HEAD_END.length);
    } else {
      this.#left -= bytes.length;
    }
    if (this.#left > 0) return undefined;
    this.#head = '';
    this.#left = undefined;
    return this.#status;
  }
}
