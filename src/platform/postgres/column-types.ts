import pg from 'pg';

type Parser = (text: string) => unknown;

const { INT8, TIMESTAMPTZ } = pg.types.builtins as Readonly<Record<string, number>>;

/** Every column comes in PostgreSQL's text format. */
const { getTypeParser: getDriversParser } = pg.types as { getTypeParser: (oid: number, format?: string) => Parser };

/**
 * Finds the parser for a column of a type, by the type's number in PostgreSQL. A `timestamptz` becomes RFC 3339 in UTC,
 * as a JavaScript Date would drop its microseconds. An `int8` becomes a number, since no count here comes near 2^53.
 */
export function getTypeParser(oid: number, format?: string): Parser {
  if (oid === TIMESTAMPTZ) return parseTimestamp;
  if (oid === INT8) return Number;
  return getDriversParser(oid, format);
}

/** The length of a timestamp with all six decimals. */
const FULL_LENGTH = '2026-11-20 23:40:05.123456+00'.length;

/**
 * Reads a timestamp of a session in UTC and ISO, `2026-11-20 23:40:05.12+00`: PostgreSQL leaves out trailing zeros.
 *
 * @returns RFC 3339 with six decimals, `2026-11-20T23:40:05.120000Z`
 */
export function parseTimestamp(text: string): string {
  // Nearly all timestamps have this form, and a page of the feed has 200.
  if (text.length === FULL_LENGTH && text[10] === ' ') return `${text.slice(0, 10)}T${text.slice(11, 26)}Z`;
  const [date = '', time = ''] = text.replace(/\+00$/, '').split(' ');
  const [seconds = '', fraction = ''] = time.split('.');
  return `${date}T${seconds}.${fraction.padEnd(6, '0')}Z`;
}
