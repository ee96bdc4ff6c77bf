/** Formats a position with its time, `1795218005.123456 (2026-11-20T23:40:05Z)`. */
export function showPosition(since: number): string {
  const date = new Date(Math.floor(since) * 1000);
  return Number.isNaN(date.getTime()) ? String(since) : `${since} (${date.toISOString().replace('.000Z', 'Z')})`;
}
