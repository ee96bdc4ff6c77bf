import type { Knex } from 'knex';
import { COLUMNS, type Kind } from '../columns.js';
import { copyAsNdjson, withSnapshot, type WriteText } from './snapshot.js';
import type { Micros } from '../../platform/time/micros.js';

/** How an export writes rows. */
export type ExportFormat = 'csv' | 'ndjson';

export interface ExportOptions {
  readonly kind: Kind;
  readonly format: ExportFormat;
  readonly write: WriteText;
  readonly signal?: AbortSignal;
}

export interface ExportResult {
  readonly rows: number;
  /** For titles: the position from which a mirror that begins with this copy follows the feed. */
  readonly position: Micros | undefined;
}

/**
 * Exports all titles, people or collections as of one moment. Streams the rows, so memory stays flat at any size.
 *
 * Titles come in the order of the feed, which an import elsewhere keeps. Other rows are sorted by id.
 *
 * @throws the database's error, the error of `write`, or the reason of the aborted signal
 */
export function exportCatalogue(db: Knex, { kind, format, write, signal }: ExportOptions): Promise<ExportResult> {
  return withSnapshot(db, signal, async (snapshot) => {
    const position = kind === 'titles' ? await snapshot.position() : undefined;
    return { rows: await snapshot.copy(copyStatement(kind, format), write), position };
  });
}

/** Writes the columns that an import reads. */
function copyStatement(kind: Kind, format: ExportFormat): string {
  const columns = COLUMNS[kind];
  const names = columns.map(({ name }) => name).join(', ');
  const order = kind === 'titles' ? 'updated_at' : 'svc_id';
  if (format === 'ndjson') return copyAsNdjson(`select ${names} from public.${kind} order by ${order}`);
  const values = columns.map(({ name, type }) => (type === 'boolean' ? `${name}::text as ${name}` : name));
  return `copy (select ${values.join(', ')} from public.${kind} order by ${kind}.${order})
            to stdout (format csv, header true, encoding 'UTF8')`;
}
