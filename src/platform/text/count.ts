/** @returns a whole number for people: `1,234,567` */
export function formatCount(count: number): string {
  return count.toLocaleString('en-US');
}

/** @returns a count with its noun: `1 row`, `1,234 rows` */
export function countOf(count: number, noun: string): string {
  return `${formatCount(count)} ${count === 1 ? noun : `${noun}s`}`;
}
