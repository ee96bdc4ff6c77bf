import { pipeline } from 'node:stream/promises';
import type { Knex } from 'knex';
import type { ClientBase } from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { positionAfterCopy } from './changes.js';
import { COLUMNS, type Kind } from './columns.js';
import { withSession } from './session.js';
import { fromRfc3339, systemClock, type Micros } from '../platform/time/micros.js';

/** How an export writes rows. */
export type ExportFormat = 'csv' | 'ndjson';

export interface ExportOptions {
  readonly kind: Kind;
  readonly format: ExportFormat;
  /** Consumes the text, in UTF-8. When it rejects, the export fails. */
  readonly write: (text: AsyncIterable<Buffer>) => Promise<void>;
  /** Called with the rows so far and in all. The total is undefined when the role may not read the counts. */
  readonly onProgress?: (rows: number, total: number | undefined) => void;
  readonly signal?: AbortSignal;
}

export interface ExportResult {
  readonly rows: number;
  /** For titles: from where a mirror that begins with this copy follows the feed. People and collections have none. */
  readonly position: Micros | undefined;
}

/** Bound on the wait for a table that another program has locked, such as a migration. */
const LOCK_TIMEOUT = '60s';

const LF = 10;

/**
 * Exports all titles, people or collections as of one moment, while others go on writing. The export takes no lock that
 * a writer waits for, and needs no right to write. It streams the rows, so memory stays flat at any size.
 *
 * Titles come in the order of the feed, so that an import elsewhere keeps that order. Other rows come in the order of
 * their ids.
 *
 * @throws the database's error, the error of `write`, or the reason of the aborted signal
 */
export async function exportCatalogue(db: Knex, options: ExportOptions): Promise<ExportResult> {
  const { kind, signal } = options;
  // Read before the snapshot: every commit that the snapshot lacks then has a later stamp.
  const quiet = kind === 'titles' ? await quietClock(db) : undefined;
  return withSession(db, signal, async (session) => {
    await session.query('begin isolation level repeatable read read only');
    await session.query(`set local lock_timeout = '${LOCK_TIMEOUT}'`);
    const newest = kind === 'titles' ? await newestIn(session) : undefined;
    const total = await countKept(session, kind);
    const copy = session.query(copyTo(copyStatement(kind, options.format)));
    const header = options.format === 'csv' ? 1 : 0;
    const report = (lines: number): void => options.onProgress?.(lines - header, total);
    await pipeline(
      copy,
      (source: AsyncIterable<Buffer>) => countLines(source, report),
      options.write,
      signal ? { signal } : {},
    );
    await session.query('commit');
    const position = kind === 'titles' ? positionAfterCopy(newest, quiet, systemClock()) : undefined;
    return { rows: copy.rowCount, position };
  });
}

/** @returns undefined also on a standby, which does not see the writers, and for a role without the right to ask */
async function quietClock(db: Knex): Promise<Micros | undefined> {
  const { rows } = await db.raw<{ rows: [{ can_tell: boolean }] }>(
    `select not pg_is_in_recovery() and has_function_privilege('public.catalog_quiet_clock()', 'execute') as can_tell`,
  );
  if (!rows[0].can_tell) return undefined;
  // Not readQuietClock(): it also reads titles. These may be locked, and the signal could not end that wait.
  const clock = await db.raw<{ rows: [{ quiet: string | null }] }>('select public.catalog_quiet_clock() as quiet');
  const [{ quiet }] = clock.rows;
  return quiet === null ? undefined : fromRfc3339(quiet);
}

async function countKept(session: ClientBase, kind: Kind): Promise<number | undefined> {
  const { rows: rights } = await session.query<{ may: boolean }>(
    `select has_table_privilege('public.catalog_counts', 'select') as may`,
  );
  if (rights[0]?.may !== true) return undefined;
  const { rows } = await session.query<{ total: number }>(`select ${kind} as total from public.catalog_counts`);
  return rows[0]?.total;
}

/** @returns the newest stamp, or the beginning of the feed when that is later: the feed refuses positions before it */
async function newestIn(session: ClientBase): Promise<Micros | undefined> {
  const { rows } = await session.query<{ newest: string | null }>(
    'select greatest(max(updated_at), (select beginning from public.catalog_feed)) as newest from public.titles',
  );
  const newest = rows[0]?.newest ?? null;
  return newest === null ? undefined : fromRfc3339(newest);
}

/** An import reads the same columns, so that it restores the file's rows unchanged. */
function copyStatement(kind: Kind, format: ExportFormat): string {
  const columns = COLUMNS[kind];
  const names = columns.map(({ name }) => name).join(', ');
  const order = kind === 'titles' ? 'updated_at' : 'svc_id';
  if (format === 'csv') {
    const values = columns.map(({ name, type }) => (type === 'boolean' ? `${name}::text as ${name}` : name));
    return `copy (select ${values.join(', ')} from public.${kind} order by ${kind}.${order})
              to stdout (format csv, header true, encoding 'UTF8')`;
  }
  // CSV with a quote and a delimiter that JSON never contains, so each row is the JSON itself. COPY's text format would
  // escape it.
  return `copy (select row_to_json(r) from (select ${names} from public.${kind} order by ${order}) r)
            to stdout (format csv, quote e'\\x01', delimiter e'\\x02', encoding 'UTF8')`;
}

/** Passes text on. @param report - called after each piece with the number of lines, about the number of rows */
async function* countLines(source: AsyncIterable<Buffer>, report: (lines: number) => void): AsyncGenerator<Buffer> {
  let lines = 0;
  for await (const piece of source) {
    for (let at = piece.indexOf(LF); at >= 0; at = piece.indexOf(LF, at + 1)) lines++;
    report(lines);
    yield piece;
  }
}
