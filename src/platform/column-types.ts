import pg from 'pg';

type GetTypeParser = (oid: number, format?: string) => (value: string) => unknown;

const PARSERS = new Map<number, (value: string) => unknown>([
  [pg.types.builtins.TIMESTAMPTZ, toRfc3339],
  [pg.types.builtins.INT8, Number],
]);

/**
 * Finds what reads a column of a type, by its number in PostgreSQL. A `timestamptz` becomes RFC 3339 in UTC with its
 * microseconds, which a JavaScript Date would drop; `int8` a number, since no count here comes near 2^53. All are in the
 * text format, which the driver and our own queries ask for.
 */
export function getTypeParser(oid: number, format?: string): (value: string) => unknown {
  let parser = PARSERS.get(oid);
  if (parser === undefined) {
    parser = (pg.types.getTypeParser as GetTypeParser)(oid, format);
    PARSERS.set(oid, parser);
  }
  return parser;
}

/** Of `2026-11-20 23:40:05.123456+00`, which nearly all are; PostgreSQL leaves out trailing zeros. */
const FULL_LENGTH = 29;

/** Reads what PostgreSQL writes in a session that speaks UTC and ISO, `2026-11-20 23:40:05.12+00`. */
function toRfc3339(text: string): string {
  // A page of the feed has 200 of them: this form is only cut into pieces.
  if (text.length === FULL_LENGTH && text[10] === ' ') return `${text.slice(0, 10)}T${text.slice(11, 26)}Z`;
  const [date = '', time = ''] = text.replace(/\+00$/, '').split(' ');
  const [seconds = '', fraction = ''] = time.split('.');
  return `${date}T${seconds}.${fraction.padEnd(6, '0')}Z`;
}
