import { OperatorError } from '../../errors.js';
import { COLUMNS, FIXED_VALUES, type Column, type Columns, type Kind } from '../columns.js';
import { quote } from './quote.js';

/** How the columns and values of a foreign file become ours. */
export interface MappingOptions {
  /** Our column to theirs. */
  readonly columns?: ReadonlyMap<string, string>;
  /** Our column to (their value to our value). */
  readonly values?: ReadonlyMap<string, ReadonlyMap<string, string>>;
  /** Leave out the rows whose value in a column that has mapped values is neither mapped nor one of ours. */
  readonly skipUnmapped?: boolean;
}

/** A column of ours, where to find it in the file, and how its cells are read. */
export interface MappedColumn extends Column {
  /** Its name in the file. */
  readonly theirs: string;
  /** Whether the operator named it: then a file without it is an error. */
  readonly isNamed: boolean;
  /** For a fixed set of values: what each accepted cell stands for. */
  readonly accepted: ReadonlyMap<string, string> | undefined;
  /** Whether a row with any other value is left out instead of rejected. */
  readonly skipsOthers: boolean;
}

/**
 * Applies the operator's mappings to the columns of a kind.
 *
 * @param known - the columns of each kind
 * @throws OperatorError when a mapping names an unknown column or value
 */
export function mapColumns(kind: Kind, options: MappingOptions, known: Columns = COLUMNS): readonly MappedColumn[] {
  const columns = known[kind];
  const mappable = columns.filter(({ type }) => type === 'media_type' || type === 'boolean');
  for (const ours of options.columns?.keys() ?? []) {
    if (!columns.some(({ name }) => name === ours)) {
      throw new OperatorError(`--column: ${kind} have no column ${quote(ours)}. They have ${names(columns)}.`);
    }
  }
  for (const ours of options.values?.keys() ?? []) {
    if (!mappable.some(({ name }) => name === ours)) {
      throw new OperatorError(
        mappable.length === 0
          ? `--value: ${kind} have no column with a fixed set of values.`
          : `--value: ${quote(ours)} is no column with a fixed set of values. Of ${kind}, those are ${names(mappable)}.`,
      );
    }
  }
  if (options.skipUnmapped && !options.values?.size) {
    throw new OperatorError('--skip-unmapped goes with --value: it leaves out the rows whose value is not mapped.');
  }
  return columns.map((column) => {
    const { name, type } = column;
    const values = options.values?.get(name);
    return {
      ...column,
      theirs: options.columns?.get(name) ?? name,
      isNamed: options.columns?.has(name) === true || values !== undefined,
      accepted: type === 'media_type' || type === 'boolean' ? acceptedCells(name, type, values) : undefined,
      skipsOthers: options.skipUnmapped === true && values !== undefined,
    };
  });
}

function acceptedCells(
  name: string,
  type: 'media_type' | 'boolean',
  values: ReadonlyMap<string, string> = new Map(),
): ReadonlyMap<string, string> {
  const accepted = new Map(FIXED_VALUES[type]);
  for (const [theirs, ours] of values) {
    const value = FIXED_VALUES[type].get(ours);
    if (value === undefined) {
      throw new OperatorError(`--value ${name}: ${quote(ours)} is not a value of ours, which are ${oneOf(type)}.`);
    }
    accepted.set(theirs.trim(), value);
  }
  return accepted;
}

/** The values of a type in words. */
export function oneOf(type: 'media_type' | 'boolean'): string {
  return type === 'media_type' ? 'movie or series' : 'true or false (1 or 0, yes or no, t or f)';
}

/**
 * Finds our columns in the columns that a file has.
 *
 * @returns the place of each of our columns, -1 for an optional one that the file lacks
 * @throws OperatorError that names the missing column, and the columns of the file
 */
export function locateColumns(columns: readonly MappedColumn[], found: readonly string[]): number[] {
  return columns.map(({ name, theirs, required, isNamed }) => {
    const place = found.indexOf(theirs);
    if (place < 0 && (required || isNamed)) throw missingColumn(name, theirs, found);
    if (place >= 0 && found.includes(theirs, place + 1)) {
      throw new OperatorError(`The header has the column ${quote(theirs)} twice. Rename one of them.`);
    }
    return place;
  });
}

/** Makes the error for a missing column: it lists the columns of the file, and says how to name one. */
export function missingColumn(name: string, theirs: string, found: readonly string[]): OperatorError {
  const list = found.length === 0 ? 'none' : found.map((column) => quote(column)).join(', ');
  const wanted = theirs === name ? name : `${quote(theirs)}, given for ${name}`;
  return new OperatorError(
    `The file has no column ${wanted}. Its columns are ${list}. Say which one is meant with --column ${name}=THEIRS.`,
  );
}

function names(columns: readonly Column[]): string {
  return columns.map(({ name }) => name).join(', ');
}
