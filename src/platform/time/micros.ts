/**
 * A point in time as whole microseconds since 1970-01-01T00:00:00Z, the precision of PostgreSQL's `timestamptz`. A
 * bigint never rounds.
 */
export type Micros = bigint;

export const MICROS_PER_SECOND = 1_000_000n;

/** The current time, in the milliseconds of the system clock. */
export function systemClock(): Micros {
  return BigInt(Date.now()) * 1000n;
}

/**
 * Writes a point in time as RFC 3339 in UTC with six decimals, `2026-11-20T23:40:05.123456Z`. PostgreSQL reads this
 * form exactly, so it also serves as a parameter of a query.
 */
export function toRfc3339(micros: Micros): string {
  const fraction = ((micros % MICROS_PER_SECOND) + MICROS_PER_SECOND) % MICROS_PER_SECOND;
  const seconds = (micros - fraction) / MICROS_PER_SECOND;
  const date = new Date(Number(seconds) * 1000).toISOString().slice(0, 'YYYY-MM-DDTHH:MM:SS'.length);
  return `${date}.${String(fraction).padStart(6, '0')}Z`;
}

/** Reads the form of {@link toRfc3339}. */
export function fromRfc3339(text: string): Micros {
  const [seconds = '', fraction = ''] = text.slice(0, -1).split('.');
  return BigInt(Date.parse(`${seconds}Z`)) * 1000n + BigInt(fraction);
}

/**
 * Writes a point in time as the seconds of a JSON number, exact to the microsecond until the year 2242. The quotient is
 * correctly rounded, and below 2^33 neighbouring doubles are less than a microsecond apart. The shortest decimal for
 * the double therefore has these six places.
 */
export function toSeconds(micros: Micros): number {
  return Number(micros) / 1e6;
}

/** Reads the form of {@link toSeconds}, to the nearest microsecond. */
export function fromSeconds(seconds: number): Micros {
  return BigInt(Math.round(seconds * 1e6));
}

/** Cuts a point in time to the milliseconds since 1970 that JavaScript has. */
export function toMilliseconds(micros: Micros): number {
  return Number(micros / 1000n);
}
