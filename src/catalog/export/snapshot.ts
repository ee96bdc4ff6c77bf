import { pipeline } from 'node:stream/promises';
import type { Knex } from 'knex';
import type { ClientBase } from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { fromRfc3339, MICROS_PER_SECOND, systemClock, type Micros } from '../../platform/time/micros.js';
import { positionAfterCopy } from '../position.js';
import { COLUMNS, type Kind } from '../columns.js';
import { withSession } from '../session.js';
import { asPosition } from '../since.js';

/** Consumes text in UTF-8. A copy fails when it rejects. */
type WriteText = (text: AsyncIterable<Buffer>) => Promise<void>;

/** The catalogue as of one moment. */
export interface Snapshot {
  /** Streams the rows of a statement `copy … to stdout`. @returns the number of rows */
  copy(statement: string, write: WriteText): Promise<number>;
  /** The snapshot has every commit with a stamp up to this one; undefined when unknown. */
  readonly completeUntil: Micros | undefined;
  /** @returns the identity of the feed, a UUID; undefined if the database has lost it */
  feedId(): Promise<string | undefined>;
  /** @returns the position from which a mirror that begins with titles of this snapshot follows the feed */
  position(): Promise<Micros>;
}

/** How much the clocks of a database and of its successor after a failover may differ. */
const CLOCK_DIFFERENCE: Micros = 60n * MICROS_PER_SECOND;

/** Bound on the wait for a table that another program, such as a migration, has locked. */
const LOCK_TIMEOUT = '60s';

/**
 * Runs work on the catalogue as of one moment. Takes no lock that a writer waits for, and needs no right to write.
 *
 * @throws the database's error, the error of the work, or the reason of the aborted signal
 */
export async function withSnapshot<T>(
  db: Knex,
  signal: AbortSignal | undefined,
  work: (snapshot: Snapshot) => Promise<T>,
): Promise<T> {
  // Read before the snapshot: every commit that the snapshot lacks then has a later stamp.
  const safeTime = await readSafeTime(db);
  return withSession(db, signal, async (session) => {
    await session.query('begin isolation level repeatable read read only');
    await session.query(`set local lock_timeout = '${LOCK_TIMEOUT}'`);
    const result = await work({
      completeUntil: safeTime === undefined ? undefined : asPosition(safeTime - CLOCK_DIFFERENCE),
      async copy(statement, write) {
        const rows = session.query(copyTo(statement));
        await pipeline(rows, write, signal ? { signal } : {});
        return rows.rowCount;
      },
      feedId: async () => {
        const { rows } = await session.query<{ identity: string }>('select identity from public.catalog_feed');
        return rows[0]?.identity;
      },
      position: async () => positionAfterCopy(await newestIn(session), safeTime, systemClock()),
    });
    await session.query('commit');
    return result;
  });
}

/**
 * @param query - selects the rows
 * @returns a statement that writes each row as a JSON object, one a line
 */
export function copyAsNdjson(query: string): string {
  // CSV with a quote and a delimiter that JSON never contains leaves the JSON unchanged; COPY's text format would
  // escape it.
  return `copy (select row_to_json(r) from (${query}) r)
            to stdout (format csv, quote e'\\x01', delimiter e'\\x02', encoding 'UTF8')`;
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
    'select greatest(max(updated_at), (select feed_start from public.catalog_feed)) as newest from public.titles',
  );
  const newest = rows[0]?.newest ?? null;
  return newest === null ? undefined : fromRfc3339(newest);
}

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
