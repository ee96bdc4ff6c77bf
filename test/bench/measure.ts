/** A line of a table of results. */
export interface Result {
  readonly what: string;
  readonly figures: readonly string[];
  /** The goal, and whether it was met; undefined without one. */
  readonly goal?: { readonly text: string; readonly isMet: boolean };
}

/** The median, which a slow moment of the machine hardly changes. */
export function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const [low = NaN, high = NaN] = sorted.length % 2 === 1 ? [sorted[middle], sorted[middle]] : sorted.slice(middle - 1);
  return (low + high) / 2;
}

/** Prints a heading and results, in columns. @returns whether all goals were met */
export function printResults(title: string, headings: readonly string[], results: readonly Result[]): boolean {
  const hasGoals = results.some(({ goal }) => goal !== undefined);
  const rows = [
    ['', ...headings, ...(hasGoals ? ['goal', ''] : [])],
    ...results.map(({ what, figures, goal }) => [
      what,
      ...figures,
      ...(goal ? [goal.text, goal.isMet ? 'met' : 'MISSED'] : ['', '']),
    ]),
  ];
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  print(`\n${title}\n`);
  for (const row of rows) {
    const cells = row.map((cell, column) =>
      column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0),
    );
    print(`  ${cells.join('  ').trimEnd()}\n`);
  }
  return results.every(({ goal }) => goal?.isMet !== false);
}

export function print(text: string): void {
  process.stdout.write(text);
}

/** Formats a whole number with separators. */
export function count(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}
