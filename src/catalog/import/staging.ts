import { pipeline } from 'node:stream/promises';
import type { ClientBase } from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import type { Column } from '../columns.js';

/** Rows wait in this temporary table until the whole file is read. */
export const STAGING = 'pg_temp.import_rows';

/** Bytes that may wait for PostgreSQL before reading stops. */
const HIGH_WATER_MARK = 256 * 1024;

/** How many repeated ids are fetched at once. */
const FETCHED_ROWS = 10_000;

/** A row whose id an earlier line has. */
export interface RepeatedRow {
  readonly line: number;
  readonly svc_id: string;
  readonly first: number;
}

/**
 * Creates the staging table and fills it. It is temporary: it costs no WAL and no lock, and ends with the session.
 *
 * @param copyText - rows in COPY's text format: the line number and the columns, in order
 */
export async function fillStaging(
  session: ClientBase,
  columns: readonly Column[],
  copyText: () => AsyncGenerator<Buffer>,
): Promise<void> {
  const definitions = columns.map(({ name, type }) => `${name} ${type === 'boolean' ? type : 'text collate "C"'}`);
  // Table and COPY share one transaction. Only then does COPY append; otherwise it fills gaps in earlier pages, and the
  // pages are no longer in the order of lines.
  await session.query('begin');
  await session.query(`create temporary table import_rows (line bigint not null, ${definitions.join(', ')})`);
  const copy = session.query(copyFrom(`copy ${STAGING} from stdin`, { highWaterMark: HIGH_WATER_MARK }));
  await pipeline(copyText, copy);
  await session.query('commit');
}

/**
 * Removes the rows whose id an earlier line has: which of two rows is right cannot be decided here.
 *
 * @param onRepeated - called for each, in the order of lines
 */
export async function removeRepeated(session: ClientBase, onRepeated: (row: RepeatedRow) => void): Promise<void> {
  const repeated = `(
    select line, svc_id, first
      from ${STAGING}
      join (select svc_id, min(line) as first from ${STAGING} group by svc_id having count(*) > 1) ids using (svc_id)
     where line > first) repeated`;
  await session.query('begin');
  // A cursor keeps memory flat, however many there are.
  await session.query(`declare repeated_rows cursor for select * from ${repeated} order by line`);
  let found = 0;
  let fetched: RepeatedRow[];
  do {
    ({ rows: fetched } = await session.query<RepeatedRow>(`fetch ${FETCHED_ROWS} from repeated_rows`));
    fetched.forEach(onRepeated);
    found += fetched.length;
  } while (fetched.length > 0);
  // The search takes a second for a million rows.
  if (found > 0)
    await session.query(`delete from ${STAGING} staged using ${repeated} where staged.line = repeated.line`);
  await session.query('commit');
}
