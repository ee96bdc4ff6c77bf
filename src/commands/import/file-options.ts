import { Option } from 'commander';
import type { Format } from '../../catalog/import/index.js';
import { OperatorError } from '../../errors.js';

const ENDINGS: Readonly<Record<Format, RegExp>> = {
  csv: /\.csv(\.gz)?$/i,
  tsv: /\.tsv(\.gz)?$/i,
  ndjson: /\.(ndjson|jsonl)(\.gz)?$/i,
};

export function kindOption(description: string): Option {
  return new Option('--kind <kind>', description).choices(['titles', 'people', 'collections']).makeOptionMandatory();
}

export function formatOption(description: string, formats: readonly Format[]): Option {
  return new Option('--format <format>', `${description}; by default as the file's ending says`).choices(formats);
}

/**
 * @param errors - what to say of `-`, which has no ending, and of any other ending
 * @returns the format that belongs to a file's ending
 * @throws OperatorError
 */
export function requireFormat<F extends Format>(
  file: string,
  formats: readonly F[],
  errors: { readonly stdio: string; readonly ending: string },
): F {
  const format = formats.find((allowed) => ENDINGS[allowed].test(file));
  if (format === undefined) throw new OperatorError(file === '-' ? errors.stdio : errors.ending);
  return format;
}
