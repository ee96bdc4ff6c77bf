import type { Knex } from 'knex';

/** When a key expires, by the database's clock. */
export type Expiry =
  | { readonly kind: 'after'; readonly seconds: number }
  /** In RFC 3339. */
  | { readonly kind: 'at'; readonly time: string };

/** A hundred years: no key or overlap needs more, and PostgreSQL's times go further. */
export const MOST_DAYS = 36_500;

const DAY_MS = 86_400_000;

/**
 * Reads a date or a time in UTC: `2027-01-31` or `2027-01-31T18:00Z`.
 *
 * @returns undefined for another text, a day that does not exist, and a time in the past or too far away
 */
export function parseExpiryTime(text: string): Expiry | undefined {
  const time = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?Z)?$/.test(text) ? Date.parse(text) : NaN;
  const fromNow = time - Date.now();
  if (!(fromNow > 0 && fromNow <= MOST_DAYS * DAY_MS)) return undefined;
  // Date.parse() reads February 30 as a day in March.
  const exact = new Date(time).toISOString();
  return exact.startsWith(text.slice(0, 10)) ? { kind: 'at', time: exact } : undefined;
}

/** @returns the value of the column `expires_at` */
export function expiresAt(db: Knex, expires: Expiry | undefined): Knex.Raw | null {
  if (expires === undefined) return null;
  return expires.kind === 'at'
    ? db.raw('?::timestamptz', [expires.time])
    : db.raw("now() + ? * interval '1 second'", [expires.seconds]);
}
