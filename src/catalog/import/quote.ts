/** The most characters of a foreign value that a message shows. */
const SHOWN = 80;

/** Quotes, backslashes, and characters that are invisible or could control a terminal. */
const UNSAFE = /["\\\p{C}\p{Zl}\p{Zp}]/gu;

const SHORT_ESCAPES: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
};

/** Formats a value of a file for a message: in quotes, unprintable characters escaped, cut at 80 characters. */
export function quote(value: string): string {
  const isLong = value.length > SHOWN;
  // A cut through a surrogate pair leaves half of it, which is dropped.
  const shown = isLong ? value.slice(0, SHOWN).replace(/[\ud800-\udbff]$/, '') : value;
  return `"${escapeUnsafe(shown)}${isLong ? '…' : ''}"`;
}

/** Escapes what could control a terminal. */
export function escapeUnsafe(text: string): string {
  return text.replace(
    UNSAFE,
    (character) => SHORT_ESCAPES[character] ?? `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
}

/** Formats bytes that are not text: those outside ASCII become `\xe9`. */
export function quoteBytes(bytes: string): string {
  const isLong = bytes.length > SHOWN;
  const shown = bytes
    .slice(0, SHOWN)
    .replace(/["\\]/g, '\\$&')
    .replace(/[^\x20-\x7e]/g, (byte) => `\\x${byte.charCodeAt(0).toString(16).padStart(2, '0')}`);
  return `"${shown}${isLong ? '…' : ''}"`;
}
