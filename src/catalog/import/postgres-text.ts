/** The escapes that PostgreSQL writes in COPY's text format (documentation of COPY, "Text Format"). */
const ESCAPED = /\\[bfnrtv\\]/g;

const CHARACTERS: Readonly<Record<string, string>> = {
  '\\b': '\b',
  '\\f': '\f',
  '\\n': '\n',
  '\\r': '\r',
  '\\t': '\t',
  '\\v': '\v',
  '\\\\': '\\',
};

const NULL = '\\N';

/**
 * Reads a cell of TSV as PostgreSQL writes it. PostgreSQL doubles each backslash. Any other backslash comes from a
 * program without escapes, and stays.
 *
 * @returns the value; empty for `\N`, which stands for null
 */
export function decodePostgresText(cell: string): string {
  if (!cell.includes('\\')) return cell;
  if (cell === NULL) return '';
  return cell.replace(ESCAPED, (escaped) => CHARACTERS[escaped] ?? escaped);
}
