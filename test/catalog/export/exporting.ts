import type { Knex } from 'knex';
import { exportCatalogue, type ExportOptions, type ExportResult } from '../../../src/catalog/export/snapshot.js';

/** Exports to memory. @param onText - called before each piece is taken; the export waits for it */
export async function exportText(
  db: Knex,
  options: Partial<ExportOptions> = {},
  onText: () => Promise<void> = () => Promise.resolve(),
): Promise<ExportResult & { readonly text: string }> {
  const pieces: Buffer[] = [];
  const result = await exportCatalogue(db, {
    kind: 'titles',
    write: async (text) => {
      for await (const piece of text) {
        await onText();
        pieces.push(piece);
      }
    },
    ...options,
  });
  return { ...result, text: Buffer.concat(pieces).toString() };
}
