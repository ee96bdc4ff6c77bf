import { pipeline } from 'node:stream/promises';
import type { ClientBase } from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import type { Column, Kind } from '../columns.js';

/** Rows wait in this temporary table until the whole file is read. */
const STAGING = 'pg_temp.import_rows';

/** Bytes that may wait for PostgreSQL before reading stops. */
const HIGH_WATER_MARK = 256 * 1024;

/** How many repeated ids are fetched at once. */
const FETCHED_ROWS = 10_000;

/** A row whose id an earlier line has. */
interface RepeatedRow {
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

/** The numbers of merged rows by their outcome. */
export interface Merged {
  readonly created: number;
  readonly updated: number;
  readonly unchanged: number;
}

/**
 * Rows of one transaction. Other writers of the catalogue wait for it, about half a second, and take their turn before
 * the next. The transition tables of its triggers stay in memory.
 */
const BATCH_ROWS = 50_000;

interface Staged {
  readonly kind: Kind;
  readonly columns: readonly Column[];
  readonly rows: number;
  /** When aborted, no further batch starts. */
  readonly signal: AbortSignal | undefined;
}

/**
 * Merges the staged rows into the catalogue in the order of the file. Each batch is one transaction.
 *
 * @param onBatch - called with the totals after each committed batch
 */
export async function mergeStaged(
  session: ClientBase,
  { kind, columns, rows: staged, signal }: Staged,
  onBatch: (merged: Merged) => void,
): Promise<void> {
  const pages = await countPages(session);
  // The pages of the staging table are in the order of lines, so no index is needed.
  const step = Math.max(1, Math.floor((pages * BATCH_ROWS) / Math.max(1, staged)));
  const batch = statements(kind, columns);
  const merged = { created: 0, updated: 0, unchanged: 0 };
  for (let page = 0; page < pages; page += step) {
    signal?.throwIfAborted();
    const range = [`(${page},0)`, `(${page + step},0)`];
    await session.query('begin');
    // The lock is taken before the first statement that reads the catalogue: a statement that waits for it in a trigger
    // would still see the catalogue from before the wait.
    await session.query('select public.catalog_lock_writers()');
    // Forces index lookups. While a small table fills, the planner's statistics are wrong, and a scan of the whole
    // table for each row takes minutes. On a large table a scan for each batch takes seconds.
    await session.query(
      'set local enable_hashjoin = off; set local enable_mergejoin = off; set local enable_seqscan = off',
    );
    const { rows, known, changed } = await surveyBatch(session, batch, range);
    const updated = changed > 0 ? ((await session.query(batch.update, range)).rowCount ?? 0) : 0;
    const insert = known === 0 ? batch.insertAll : batch.insertMissing;
    const created = known < rows ? ((await session.query(insert, range)).rowCount ?? 0) : 0;
    await session.query('commit');
    merged.created += created;
    merged.updated += updated;
    merged.unchanged += rows - created - updated;
    onBatch({ ...merged });
  }
}

async function countPages(session: ClientBase): Promise<number> {
  const { rows } = await session.query<{ pages: number }>(
    `select (pg_relation_size('${STAGING}') / current_setting('block_size')::bigint)::integer as pages`,
  );
  return rows[0]?.pages ?? 0;
}

/** How many rows a batch will create and change. */
interface Survey {
  readonly rows: number;
  /** How many rows have an id that is in the catalogue. */
  readonly known: number;
  /** How many of those differ. */
  readonly changed: number;
}

/**
 * Counts what a batch will change. Without this, each row would be looked up twice: an import of a sorted file into an
 * empty catalogue, or of an unchanged file, would take twice as long.
 */
async function surveyBatch(session: ClientBase, batch: BatchStatements, range: string[]): Promise<Survey> {
  const counted = await session.query<{ rows: number; is_new: boolean }>(batch.count, range);
  const { rows = 0, is_new: isNew = true } = counted.rows[0] ?? {};
  if (isNew) return { rows, known: 0, changed: 0 };
  const compared = await session.query<{ known: number; changed: number }>(batch.compare, range);
  const { known = 0, changed = 0 } = compared.rows[0] ?? {};
  return { rows, known, changed };
}

type BatchStatements = Readonly<Record<'count' | 'compare' | 'update' | 'insertAll' | 'insertMissing', string>>;

/** Makes the statements of one batch, which is a range of the staging table's pages. */
function statements(kind: Kind, columns: readonly Column[]): BatchStatements {
  const range = `from ${STAGING} where ctid >= $1::text::tid and ctid < $2::text::tid`;
  const batch = `(select * ${range} order by line) s`;
  const table = `public.${kind}`;
  const inserted = columns.map((column) =>
    column.default === undefined ? `s.${column.name}` : `coalesce(s.${column.name}, ${column.default})`,
  );
  const others = columns.filter(({ type }) => type !== 'id');
  const updated = others.map((column) =>
    column.default === undefined ? `s.${column.name}` : `coalesce(s.${column.name}, t.${column.name})`,
  );
  const differs = `(${others.map(({ name }) => `t.${name}`).join(', ')}) is distinct from (${updated.join(', ')})`;
  const insert = `
    insert into ${table} (${columns.map(({ name }) => name).join(', ')})
    select ${inserted.join(', ')} from ${batch}`;
  return {
    count: `
      select rows, not exists (select from ${table} t where t.svc_id between first and last) as is_new
        from (select count(*)::integer as rows, min(svc_id) as first, max(svc_id) as last ${range}) s`,
    compare: `
      select count(*)::integer as known, (count(*) filter (where ${differs}))::integer as changed
        from (select * ${range}) s
        join ${table} t on t.svc_id = s.svc_id`,
    update: `
      update ${table} t
         set ${others.map(({ name }, index) => `${name} = ${updated[index] ?? ''}`).join(', ')}
        from ${batch}
       where t.svc_id = s.svc_id and ${differs}`,
    insertAll: `${insert} order by s.line`,
    insertMissing: `${insert}
       where not exists (select from ${table} t where t.svc_id = s.svc_id)
       order by s.line`,
  };
}
