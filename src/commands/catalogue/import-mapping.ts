import { InvalidArgumentError } from 'commander';

/** Our column to theirs. */
export type Assignments = ReadonlyMap<string, string>;

/** Our column to (their value to ours). */
export type ValueMappings = ReadonlyMap<string, ReadonlyMap<string, string>>;

/** Adds `OURS=THEIRS`, split at the first `=`, which our names do not have. @throws InvalidArgumentError */
export function assignment(text: string, previous: Assignments = new Map()): Assignments {
  const { ours, theirs } = /^\s*(?<ours>[^=\s]+)\s*=\s*(?<theirs>.*\S)/s.exec(text)?.groups ?? {};
  if (ours === undefined || theirs === undefined) {
    throw new InvalidArgumentError('Use OURS=THEIRS, such as svc_id=show_id.');
  }
  if (previous.has(ours)) throw new InvalidArgumentError(`${ours} is mapped twice.`);
  return new Map(previous).set(ours, theirs);
}

/**
 * Adds `COLUMN:THEIRS=OURS`, split at the first `:` and the last `=`. Our columns have no colon and our values no `=`;
 * theirs may have both. An empty THEIRS maps the empty cell.
 *
 * @throws InvalidArgumentError
 */
export function valueMapping(text: string, previous: ValueMappings = new Map()): ValueMappings {
  const { column, theirs, ours } = /^(?<column>[^:]+):(?<theirs>.*)=(?<ours>[^=]+)$/s.exec(text)?.groups ?? {};
  if (column === undefined || theirs === undefined || ours === undefined) {
    throw new InvalidArgumentError('Use COLUMN:THEIRS=OURS, such as media_type:Movie=movie.');
  }
  const values = new Map(previous.get(column.trim()));
  if (values.has(theirs.trim())) throw new InvalidArgumentError(`${column}:${theirs} is mapped twice.`);
  return new Map(previous).set(column.trim(), values.set(theirs.trim(), ours.trim()));
}
