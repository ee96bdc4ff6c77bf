import { OperatorError } from '../errors.js';

/** Why a key is not created, changed or rolled. */
export type RefusalReason =
  | 'unknown'
  | 'revoked'
  | 'expired'
  /** It has a successor already. */
  | 'rolled'
  /** It has a successor, which is not active. */
  | 'not_replaced'
  | 'suspended'
  /** The developer has as many keys as may work at the same time. */
  | 'too_many'
  /** The developer has made as many keys as a day allows. */
  | 'too_many_today'
  /** The same form has made a key already. */
  | 'repeated';

/** A change to a key that is refused. The message is for operators; `reason` lets a page use words of its own. */
export class KeyRefused extends OperatorError {
  constructor(
    readonly reason: RefusalReason,
    message: string,
    /** The prefix of the key that the form has made, or of a rolled key's successor. */
    readonly otherPrefix?: string,
  ) {
    super(message);
  }
}

/** @returns the refusal of a prefix that no key has */
export function unknownPrefix(prefix: string): KeyRefused {
  return new KeyRefused('unknown', `No key has the prefix "${prefix}". "catalog keys list" shows them all.`);
}
