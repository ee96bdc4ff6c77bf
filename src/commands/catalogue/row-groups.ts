import { countOf, formatCount } from '../../platform/text/count.js';

/** How many values of each reason are shown, if each is in one row. */
const SHOWN_ROWS = 5;

/** How many values of each reason are shown, if some are in several rows: all that a mapping has to name. */
const SHOWN_VALUES = 20;

/** The most groups. A file has fewer, unless its rows are damaged in many ways. */
const MOST_REASONS = 50;

/** A wrong value that rows of a group have. */
interface FoundValue {
  readonly found: string;
  /** Of the first row with it. */
  readonly line: number;
  rows: number;
}

/** Rows with the same fault. */
interface FaultyRows {
  readonly reason: string;
  readonly rows: number;
  /** The first values, the most frequent of them first. */
  readonly first: readonly FoundValue[];
}

/** Groups rejected or suspicious rows by their reason. Its memory is bounded. */
export class RowGroups {
  readonly #groups = new Map<string, { rows: number; values: Map<string, FoundValue> }>();

  add(line: number, reason: string, found: string): void {
    const isKnown = this.#groups.has(reason) || this.#groups.size < MOST_REASONS;
    const key = isKnown ? reason : 'other reasons';
    const group = this.#groups.get(key) ?? { rows: 0, values: new Map<string, FoundValue>() };
    this.#groups.set(key, group);
    group.rows += 1;
    const value = group.values.get(found);
    if (value !== undefined) value.rows += 1;
    else if (group.values.size < SHOWN_VALUES) group.values.set(found, { found, line, rows: 1 });
  }

  /** @returns the groups, largest first */
  list(): readonly FaultyRows[] {
    return Array.from(this.#groups, ([reason, { rows, values }]) => {
      const found = Array.from(values.values()).sort((a, b) => b.rows - a.rows);
      return { reason, rows, first: found[0]?.rows === 1 ? found.slice(0, SHOWN_ROWS) : found };
    }).sort((a, b) => b.rows - a.rows);
  }

  /**
   * @param outcome - the fate of the rows
   * @returns the groups for people, one line each, with the values below; empty without any
   */
  report(outcome: string): string {
    return this.list()
      .flatMap(({ reason, rows, first }) => {
        const others = first.reduce((left, value) => left - value.rows, rows);
        return [
          `${countOf(rows, 'row')} ${outcome}: ${reason}`,
          ...first.map(valueLine),
          ...(others > 0 ? [`  … and ${formatCount(others)} more`] : []),
        ];
      })
      .map((line) => `${line}\n`)
      .join('');
  }
}

function valueLine({ found, line, rows }: FoundValue): string {
  return rows === 1 ? `  line ${line}: ${found}` : `  ${found}: ${countOf(rows, 'row')}, first line ${line}`;
}
