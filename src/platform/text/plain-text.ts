/**
 * The embeddings, overrides and isolates of the Unicode bidirectional algorithm. They change the direction of the text
 * after them, even beyond the name that contains them, and so can make a page or a table read differently.
 */
export const DIRECTION_CONTROLS = /[\u202A-\u202E\u2066-\u2069]/gu;

/** Matches the characters that a name or a label of one line must not contain. */
const UNPRINTABLE = /\p{Cc}|\p{Cs}|[\u2028\u2029]/u;

/** The advice for a name or a label that {@link isPlainText} refuses. */
export const NOT_PLAIN = 'Leave out line breaks and other control characters, including text direction marks.';

/** @returns whether a name or a label that a person types may be shown unchanged */
export function isPlainText(text: string): boolean {
  return !UNPRINTABLE.test(text) && text.search(DIRECTION_CONTROLS) < 0;
}

/**
 * Makes foreign text safe to show on one line: it cannot control a terminal, turn the direction of other text, or break
 * out of its line. PostgreSQL stores every result.
 *
 * @param maxLength - in characters as PostgreSQL counts them; longer text is cut and ends in `…`
 */
export function printable(text: string, maxLength = Infinity): string {
  const line = text.replaceAll(/[\p{Cc}\p{Cs}\u2028\u2029]/gu, '\uFFFD').replaceAll(DIRECTION_CONTROLS, '\uFFFD');
  if (line.length <= maxLength) return line;
  const characters = Array.from(line);
  return characters.length <= maxLength ? line : `${characters.slice(0, maxLength - 1).join('')}…`;
}

/** Makes foreign text of several lines safe to show, see {@link printable}. */
export function printableLines(text: string): string {
  return text.replaceAll(/[^\n]+/g, (line) => printable(line));
}
