/** How many rows of each reason are shown. */
const SHOWN_ROWS = 5;

/** The most reasons with a group of their own. A file has fewer, unless its rows are damaged in many ways. */
const MOST_REASONS = 50;

/** Rejected rows with the same fault. */
interface RejectedRows {
  readonly reason: string;
  readonly rows: number;
  /** The first rows, and what each has instead. */
  readonly first: readonly { readonly line: number; readonly found: string }[];
}

/** Groups rejected rows by their reason. Its memory is bounded. */
export class Rejections {
  readonly #groups = new Map<string, { rows: number; first: { line: number; found: string }[] }>();

  add(line: number, reason: string, found: string): void {
    const isKnown = this.#groups.has(reason) || this.#groups.size < MOST_REASONS;
    const key = isKnown ? reason : 'other reasons';
    const group = this.#groups.get(key) ?? { rows: 0, first: [] };
    this.#groups.set(key, group);
    group.rows += 1;
    if (group.first.length < SHOWN_ROWS) group.first.push({ line, found });
  }

  /** @returns the groups, largest first */
  list(): readonly RejectedRows[] {
    return Array.from(this.#groups, ([reason, group]) => ({ reason, ...group })).sort((a, b) => b.rows - a.rows);
  }

  /** @returns the groups for people, one line each, with the rows below; empty without any */
  describe(): string {
    return this.list()
      .flatMap(({ reason, rows, first }) => [
        `${rows === 1 ? '1 row' : `${rows.toLocaleString('en-US')} rows`} rejected: ${reason}`,
        ...first.map(({ line, found }) => `  line ${line}: ${found}`),
        ...(rows > first.length ? [`  … and ${(rows - first.length).toLocaleString('en-US')} more`] : []),
      ])
      .map((line) => `${line}\n`)
      .join('');
  }
}
