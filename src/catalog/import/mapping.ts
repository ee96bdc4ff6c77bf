import { OperatorError, UsageError } from '../../errors.js';
import { COLUMNS, type Column, type Kind } from '../columns.js';
import { quote } from './reader.js';

/** How the columns and values of a foreign file become ours. */
export interface MappingOptions {
  /** Our column to theirs. */
  readonly columns?: ReadonlyMap<string, string> | undefined;
  /** Our column to (their value to our value). */
  readonly values?: ReadonlyMap<string, ReadonlyMap<string, string>> | undefined;
  /** Leave out rows whose value, in a column with mapped values, is neither mapped nor one of ours. */
  readonly skipUnmapped?: boolean | undefined;
}

/** A column of ours, where to find it in the file, and how its cells are read. */
export interface MappedColumn extends Column {
  /** Its name in the file. */
  readonly theirs: string;
  /** Whether the file must have it. Where it lacks a column, each cell is empty, which may be mapped. */
  readonly isNeeded: boolean;
  /** Of a column with a fixed set of values: each accepted cell, and the value that PostgreSQL gets. */
  readonly accepted: ReadonlyMap<string, string> | undefined;
  /** Whether a row with any other value is left out instead of rejected. */
  readonly skipsOthers: boolean;
}

/** The accepted words of each type with a fixed set of values, and the value that PostgreSQL gets. */
const FIXED_VALUES: Readonly<Record<string, ReadonlyMap<string, string>>> = {
  media_type: new Map([
    ['movie', 'movie'],
    ['series', 'series'],
  ]),
  boolean: new Map([
    ...['true', 't', 'yes', '1'].map((word) => [word, 't'] as const),
    ...['false', 'f', 'no', '0'].map((word) => [word, 'f'] as const),
  ]),
};

/**
 * Applies the operator's mappings to the columns of a kind.
 *
 * @throws UsageError when a mapping names an unknown column or value
 */
export function mapColumns(kind: Kind, { columns, values, skipUnmapped }: MappingOptions): readonly MappedColumn[] {
  const known = COLUMNS[kind];
  for (const ours of columns?.keys() ?? []) {
    if (!known.some(({ name }) => name === ours)) {
      throw new UsageError(`--column: ${kind} have no column ${quote(ours)}. Columns: ${names(known)}.`);
    }
  }
  const fixed = known.filter(({ type }) => type in FIXED_VALUES);
  for (const ours of values?.keys() ?? []) {
    if (!fixed.some(({ name }) => name === ours)) {
      throw new UsageError(
        `--value: ${kind} have no column ${quote(ours)} with a fixed set of values. ` +
          `Columns with one: ${names(fixed) || 'none'}.`,
      );
    }
  }
  if (skipUnmapped && !values?.size) throw new UsageError('--skip-unmapped requires --value.');
  return known.map((column) => {
    const { name, type } = column;
    const mapped = values?.get(name);
    return {
      ...column,
      theirs: columns?.get(name) ?? name,
      isNeeded: columns?.has(name) === true || (mapped === undefined ? column.default === undefined : !mapped.has('')),
      accepted: FIXED_VALUES[type] && acceptedCells(column, FIXED_VALUES[type], mapped),
      skipsOthers: skipUnmapped === true && mapped !== undefined,
    };
  });
}

function acceptedCells(
  column: Column,
  ours: ReadonlyMap<string, string>,
  mapped: ReadonlyMap<string, string> = new Map(),
): ReadonlyMap<string, string> {
  const accepted = new Map(ours);
  for (const [theirs, word] of mapped) {
    const value = ours.get(word);
    if (value === undefined) {
      throw new UsageError(`--value ${column.name}: ${quote(word)} is not one of ${acceptedWords(column)}.`);
    }
    accepted.set(theirs.trim(), value);
  }
  return accepted;
}

/** Lists the values of a column with a fixed set of them. */
export function acceptedWords({ type }: Column): string {
  return type === 'media_type' ? 'movie or series' : 'true or false (1 or 0, yes or no, t or f)';
}

/**
 * Finds our columns in the header of a file.
 *
 * @returns the index of each of our columns in the file; -1 for an optional column that the file lacks
 * @throws OperatorError when a needed column is missing, or one of ours is there twice
 */
export function locateColumns(columns: readonly MappedColumn[], header: readonly string[]): number[] {
  const needed = columns.filter(({ isNeeded }) => isNeeded);
  const missing = needed.filter(({ theirs }) => !header.includes(theirs));
  if (missing.length > 0) throw missingColumns(missing, header, missing.length === needed.length);
  return columns.map((column) => {
    const place = header.indexOf(column.theirs);
    if (place >= 0 && header.includes(column.theirs, place + 1)) {
      throw new OperatorError(`The header has the column ${quote(column.theirs)} twice.`, {
        advice: 'Rename one of them.',
      });
    }
    return place;
  });
}

/** Makes the error for columns that the file lacks. @param found - the columns of the file, or its first row */
export function missingColumns(
  missing: readonly MappedColumn[],
  found: readonly string[],
  mayBeRow = false,
): OperatorError {
  const list = found.length === 0 ? 'none' : found.map((column) => quote(column)).join(', ');
  const wanted = missing.map(({ name, theirs }) => (theirs === name ? name : `${quote(theirs)}, given for ${name}`));
  const options = missing.map(({ name }) => `--column ${name}=THEIRS`).join(' ');
  const fill =
    missing.some(({ type }) => type === 'media_type') && 'fill a missing column with --value media_type:=OURS';
  const header = `If the file has no header line, put one before it that names each column, such as ${names(missing)}.`;
  return new OperatorError(`The file has no column ${wanted.join(' or ')}. Its columns: ${list}.`, {
    advice:
      `Choose ${missing.length === 1 ? 'one' : 'them'} with ${options}${fill ? `, or ${fill}` : ''}.` +
      (mayBeRow ? ` ${header}` : ''),
  });
}

function names(columns: readonly Column[]): string {
  return columns.map(({ name }) => name).join(', ');
}
