/** Makes foreign text safe to show: it cannot control a terminal, nor fill it. */
export function printable(text: string): string {
  const line = text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, '\uFFFD');
  return line.length > 500 ? `${line.slice(0, 500)}…` : line;
}

/** Formats a position with its time, `1795218005.123456 (2026-11-20T23:40:05Z)`. */
export function showPosition(since: number): string {
  const date = new Date(Math.floor(since) * 1000);
  return Number.isNaN(date.getTime()) ? String(since) : `${since} (${date.toISOString().replace('.000Z', 'Z')})`;
}
