import { InvalidArgumentError } from 'commander';

/** Reads an id or a limit from the command line. @throws InvalidArgumentError, which is misuse */
export function positiveInteger(text: string): number {
  const value = /^\d{1,10}$/.test(text) ? Number(text) : 0;
  if (value < 1 || value > 2_147_483_647) throw new InvalidArgumentError('Give a whole number of 1 or more.');
  return value;
}

/** Reads a name or a label. @throws InvalidArgumentError */
export function text(maximum: number): (value: string) => string {
  return (value) => {
    const trimmed = value.trim();
    // Characters as PostgreSQL counts them.
    const { length } = Array.from(trimmed);
    if (length < 1 || length > maximum) {
      throw new InvalidArgumentError(`Give 1 to ${String(maximum)} characters.`);
    }
    return trimmed;
  };
}

/** Reads a plan's id. @throws InvalidArgumentError */
export function planId(value: string): string {
  if (!/^[a-z][a-z0-9_-]{0,31}$/.test(value)) {
    throw new InvalidArgumentError('Give 1 to 32 of a-z, 0-9, _ and -, beginning with a letter.');
  }
  return value;
}

/** Reads a position in the feed of changes, in seconds since 1970. @throws InvalidArgumentError */
export function position(value: string): number {
  if (/^\d{1,10}(?:\.\d{1,6})?$/.test(value)) return Number(value);
  throw new InvalidArgumentError('Give Unix time in seconds, such as 1795218005 or 1795218005.123456.');
}
