import { Option } from 'commander';
import type { Format } from '../../catalog/import/index.js';
import { UsageError } from '../../errors.js';

const ENDINGS: Readonly<Record<Format, RegExp>> = {
  csv: /\.csv(\.gz)?$/i,
  tsv: /\.tsv(\.gz)?$/i,
  ndjson: /\.(ndjson|jsonl)(\.gz)?$/i,
};

export function kindOption(description: string): Option {
  return new Option('--kind <kind>', description).choices(['titles', 'people', 'collections']);
}

export function formatOption(formats: readonly Format[]): Option {
  return new Option('--format <format>', 'format of the file (default: from its extension)').choices(formats);
}

/**
 * Infers a format from the extension of a file.
 *
 * @param name - what to call the file in the error
 * @throws UsageError when no allowed format has that extension
 */
export function inferFormat<F extends Format>(file: string, formats: readonly F[], name: string): F {
  const format = formats.find((allowed) => ENDINGS[allowed].test(file));
  if (format === undefined) {
    throw new UsageError(`Cannot infer a format for ${name}: add --format ${formats.join(' or --format ')}.`);
  }
  return format;
}
