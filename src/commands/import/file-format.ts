import type { Format } from '../../catalog/import/index.js';

const ENDINGS: readonly (readonly [ending: RegExp, format: Format])[] = [
  [/\.csv(\.gz)?$/i, 'csv'],
  [/\.tsv(\.gz)?$/i, 'tsv'],
  [/\.(ndjson|jsonl)(\.gz)?$/i, 'ndjson'],
];

/** @returns the format that belongs to a file's ending; undefined for any other ending */
export function formatOfName(file: string): Format | undefined {
  return ENDINGS.find(([ending]) => ending.test(file))?.[1];
}
