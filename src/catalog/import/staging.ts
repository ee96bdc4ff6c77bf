import { pipeline } from 'node:stream/promises';
import type { ClientBase } from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { POSTGRES_TYPES, type Column } from '../columns.js';

/** Rows wait in this table, which no other session sees, until the whole file is read. */
export const STAGING = 'pg_temp.import_rows';

/** Bytes that may wait for PostgreSQL before reading stops. */
const HIGH_WATER_MARK = 256 * 1024;

/** How many repeated ids are reported in one batch. */
const REPORTED_AT_ONCE = 10_000;

/** A row whose id an earlier line has. */
export interface RepeatedRow {
  readonly line: number;
  readonly svc_id: string;
  readonly first: number;
}

/**
 * Makes the staging table and fills it. It is temporary: it costs no WAL and no lock, and ends with the session.
 *
 * @param copyText - rows in COPY's text format: the line number and the columns, in order
 */
export async function fillStaging(
  session: ClientBase,
  columns: readonly Column[],
  copyText: () => AsyncGenerator<Buffer>,
): Promise<void> {
  const definitions = columns.map(({ name, type }) => `${name} ${POSTGRES_TYPES[type]}`);
  const names = ['line', ...columns.map(({ name }) => name)].join(', ');
  // Table and COPY share one transaction. Only then does COPY append. Otherwise it fills gaps in earlier pages, and
  // pages are not in the order of lines.
  await session.query('begin');
  await session.query(`create temporary table import_rows (line bigint not null, ${definitions.join(', ')})`);
  const copy = session.query(copyFrom(`copy ${STAGING} (${names}) from stdin`, { highWaterMark: HIGH_WATER_MARK }));
  await pipeline(copyText, copy);
  await session.query('commit');
}

/**
 * Removes the rows whose id an earlier line has: the importer cannot know which of two rows is right.
 *
 * @param onRepeated - called for each, in the order of lines
 */
export async function removeRepeated(session: ClientBase, onRepeated: (row: RepeatedRow) => void): Promise<void> {
  await session.query(`
    create temporary table import_repeated as
    select s.line, s.svc_id, r.first
      from ${STAGING} s
      join (select svc_id, min(line) as first from ${STAGING} group by svc_id having count(*) > 1) r using (svc_id)
     where s.line > r.first`);
  await session.query('begin');
  await session.query('declare repeated cursor for select * from import_repeated order by line');
  for (;;) {
    const { rows } = await session.query<RepeatedRow>(`fetch ${REPORTED_AT_ONCE} from repeated`);
    rows.forEach(onRepeated);
    if (rows.length < REPORTED_AT_ONCE) break;
  }
  await session.query('commit');
  await session.query(`
    delete from ${STAGING} s using import_repeated r where s.svc_id = r.svc_id and s.line > r.first`);
  await session.query('drop table import_repeated');
}
