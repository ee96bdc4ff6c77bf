/**
 * Spreadsheets read a text that starts like this as a formula, which can leak other cells. An expression of JavaScript
 * and of PostgreSQL.
 */
const FORMULA = String.raw`^([-=+@\t\r])`;

/** @returns a text as a cell of CSV (RFC 4180), which no spreadsheet reads as a formula */
export function csvText(text: string): string {
  return `"${text.replace(new RegExp(FORMULA), "'$1").replaceAll('"', '""')}"`;
}

/** @returns the same in SQL @param text - an expression, our own text */
export function csvTextSql(text: string): string {
  return String.raw`'"' || replace(regexp_replace(${text}, '${FORMULA}', '''\1'), '"', '""') || '"'`;
}
