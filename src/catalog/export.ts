import { pipeline } from 'node:stream/promises';
import type { Knex } from 'knex';
import type { ClientBase } from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { positionAfterCopy } from './position.js';
import { COLUMNS, type Kind } from './columns.js';
import { withSession } from './session.js';
import { fromRfc3339, systemClock, type Micros } from '../platform/time/micros.js';

/** How an export writes rows. */
export type ExportFormat = 'csv' | 'ndjson';

export interface ExportOptions {
  readonly kind: Kind;
  readonly format: ExportFormat;
  /** Consumes the text, in UTF-8. The export fails when it rejects. */
  readonly write: (text: AsyncIterable<Buffer>) => Promise<void>;
  readonly signal?: AbortSignal;
}

export interface ExportResult {
  readonly rows: number;
  /** For titles: the position from which a mirror that begins with this copy follows the feed. */
  readonly position: Micros | undefined;
}

/** Bound on the wait for a table that another program, such as a migration, has locked. */
const LOCK_TIMEOUT = '60s';

/**
 * Exports all titles, people or collections as of one moment. Takes no lock that a writer waits for, and needs no right
 * to write. Streams the rows, so memory stays flat at any size.
 *
 * Titles come in the order of the feed, which an import elsewhere keeps. Other rows are sorted by id.
 *
 * @throws the database's error, the error of `write`, or the reason of the aborted signal
 */
export async function exportCatalogue(db: Knex, options: ExportOptions): Promise<ExportResult> {
  const { kind, signal } = options;
  // Read before the snapshot: every commit that the snapshot lacks then has a later stamp.
  const safeTime = kind === 'titles' ? await readSafeTime(db) : undefined;
  return withSession(db, signal, async (session) => {
    await session.query('begin isolation level repeatable read read only');
    await session.query(`set local lock_timeout = '${LOCK_TIMEOUT}'`);
    const newest = kind === 'titles' ? await newestIn(session) : undefined;
    const copy = session.query(copyTo(copyStatement(kind, options.format)));
    await pipeline(copy, options.write, signal ? { signal } : {});
    await session.query('commit');
    const position = kind === 'titles' ? positionAfterCopy(newest, safeTime, systemClock()) : undefined;
    return { rows: copy.rowCount, position };
  });
}

/** @returns undefined also on a standby, which does not see the writers, and for a role without the privilege */
async function readSafeTime(db: Knex): Promise<Micros | undefined> {
  const { rows: rights } = await db.raw<{ rows: [{ may: boolean }] }>(
    `select not pg_is_in_recovery() and has_function_privilege('public.catalog_quiet_clock()', 'execute') as may`,
  );
  if (!rights[0].may) return undefined;
  // Not readFeedClock(): it also reads titles, which may be locked, and the signal could not end that wait.
  const { rows } = await db.raw<{ rows: [{ time: string | null }] }>('select public.catalog_quiet_clock() as time');
  const [{ time }] = rows;
  return time === null ? undefined : fromRfc3339(time);
}

/** @returns the newest stamp, or the feed start if that is later: the feed refuses earlier positions */
async function newestIn(session: ClientBase): Promise<Micros | undefined> {
  const { rows } = await session.query<{ newest: string | null }>(
    'select greatest(max(updated_at), (select beginning from public.catalog_feed)) as newest from public.titles',
  );
  const newest = rows[0]?.newest ?? null;
  return newest === null ? undefined : fromRfc3339(newest);
}

/** Writes the columns that an import reads. */
function copyStatement(kind: Kind, format: ExportFormat): string {
  const columns = COLUMNS[kind];
  const names = columns.map(({ name }) => name).join(', ');
  const order = kind === 'titles' ? 'updated_at' : 'svc_id';
  if (format === 'csv') {
    const values = columns.map(({ name, type }) => (type === 'boolean' ? `${name}::text as ${name}` : name));
    return `copy (select ${values.join(', ')} from public.${kind} order by ${kind}.${order})
              to stdout (format csv, header true, encoding 'UTF8')`;
  }
  // CSV with a quote and a delimiter that JSON never contains leaves the JSON unchanged; COPY's text format would
  // escape it.
  return `copy (select row_to_json(r) from (select ${names} from public.${kind} order by ${order}) r)
            to stdout (format csv, quote e'\\x01', delimiter e'\\x02', encoding 'UTF8')`;
}
