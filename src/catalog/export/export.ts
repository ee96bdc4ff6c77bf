import type { Knex } from 'knex';
import { COLUMNS, type Kind } from '../columns.js';
import { copyAsNdjson, withSnapshot, type WriteText } from './snapshot.js';
import type { Micros } from '../../platform/time/micros.js';

export interface ExportOptions {
  readonly kind: Kind;
  readonly write: WriteText;
  readonly signal?: AbortSignal;
}

export interface ExportResult {
  readonly rows: number;
  /** For titles: the position from which a mirror that begins with this copy follows the feed. */
  readonly position: Micros | undefined;
}

/**
 * Exports all titles, people or collections as of one moment, in NDJSON with the columns that an import reads. Streams
 * the rows, so memory stays flat at any size.
 *
 * Titles come in the order of the feed, which an import elsewhere keeps. Other rows are sorted by id.
 *
 * @throws the database's error, the error of `write`, or the reason of the aborted signal
 */
export function exportCatalogue(db: Knex, { kind, write, signal }: ExportOptions): Promise<ExportResult> {
  const columns = COLUMNS[kind].map(({ name }) => name).join(', ');
  const order = kind === 'titles' ? 'updated_at' : 'svc_id';
  const statement = copyAsNdjson(`select ${columns} from public.${kind} order by ${order}`);
  return withSnapshot(db, signal, async (snapshot) => {
    const position = kind === 'titles' ? await snapshot.position() : undefined;
    return { rows: await snapshot.copy(statement, write), position };
  });
}
