import type { ClientBase } from 'pg';
import type { Column, Kind } from '../columns.js';
import { STAGING } from './staging.js';

/** The results of the merged rows. */
export interface Merged {
  created: number;
  updated: number;
  unchanged: number;
}

/**
 * Rows of one transaction. Other writers of the catalogue wait for it, some half a second, and get their turn before
 * the next. The transition tables of its triggers stay in memory.
 */
const BATCH_ROWS = 50_000;

export interface Staged {
  readonly kind: Kind;
  readonly columns: readonly Column[];
  readonly rows: number;
  /** When aborted, no further batch is begun. */
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
  onBatch: (merged: Readonly<Merged>) => void,
): Promise<void> {
  const pages = await countPages(session);
  // The pages of the staging table are in the order of lines, so no index is needed.
  const step = Math.max(1, Math.floor((pages * BATCH_ROWS) / Math.max(1, staged)));
  const batch = statements(kind, columns, await readDefaults(session, kind));
  const merged: Merged = { created: 0, updated: 0, unchanged: 0 };
  for (let page = 0; page < pages; page += step) {
    signal?.throwIfAborted();
    const range = [`(${page},0)`, `(${page + step},0)`];
    await session.query('begin');
    // The lock comes before the first statement that reads the catalogue. A statement that waits for the lock in its
    // trigger would still see the catalogue from before the wait.
    await session.query('select public.catalog_lock_writers()');
    // Look ids up by the index. While a small table fills, the planner's statistics are wrong. A scan of the whole
    // table for each row takes minutes. On a large table a scan for each batch takes seconds.
    await session.query(
      'set local enable_hashjoin = off; set local enable_mergejoin = off; set local enable_seqscan = off',
    );
    const { rows, known, changed } = await surveyBatch(session, batch, range);
    const insert = known === 0 ? batch.insertAll : batch.insertMissing;
    const created = known < rows ? ((await session.query(insert, range)).rowCount ?? 0) : 0;
    const updated = changed > 0 ? ((await session.query(batch.update, range)).rowCount ?? 0) : 0;
    await session.query('commit');
    merged.created += created;
    merged.updated += updated;
    merged.unchanged += rows - created - updated;
    onBatch(merged);
  }
}

async function countPages(session: ClientBase): Promise<number> {
  const { rows } = await session.query<{ pages: number }>(
    `select (pg_relation_size('${STAGING}') / current_setting('block_size')::bigint)::integer as pages`,
  );
  return rows[0]?.pages ?? 0;
}

/** @returns the default of each column that has one, as an SQL expression */
async function readDefaults(session: ClientBase, kind: Kind): Promise<ReadonlyMap<string, string>> {
  const { rows } = await session.query<{ name: string; expression: string }>(
    `select a.attname as name, pg_get_expr(d.adbin, d.adrelid) as expression
       from pg_attrdef d join pg_attribute a on a.attrelid = d.adrelid and a.attnum = d.adnum
      where d.adrelid = $1::regclass and a.attgenerated = ''`,
    [`public.${kind}`],
  );
  return new Map(rows.map(({ name, expression }) => [name, expression]));
}

/** What a batch will do. */
interface Survey {
  readonly rows: number;
  /** How many rows have an id that the catalogue has. */
  readonly known: number;
  /** How many of those differ. */
  readonly changed: number;
}

/** Counts what a batch will change, so that a batch without changes is read once and never written. */
async function surveyBatch(session: ClientBase, batch: BatchStatements, range: string[]): Promise<Survey> {
  const { rows = 0, is_new: isNew = true } =
    (await session.query<{ rows: number; is_new: boolean }>(batch.count, range)).rows[0] ?? {};
  if (isNew) return { rows, known: 0, changed: 0 };
  const { known = 0, changed = 0 } =
    (await session.query<{ known: number; changed: number }>(batch.compare, range)).rows[0] ?? {};
  return { rows, known, changed };
}

type BatchStatements = Readonly<Record<'count' | 'compare' | 'insertAll' | 'insertMissing' | 'update', string>>;

/** Makes the statements of one batch, which is a range of the staging table's pages. */
function statements(kind: Kind, columns: readonly Column[], defaults: ReadonlyMap<string, string>): BatchStatements {
  const range = `from ${STAGING} where ctid >= $1::text::tid and ctid < $2::text::tid`;
  const batch = `(select * ${range} order by line)`;
  const names = columns.map(({ name }) => name);
  const others = columns.filter(({ name }) => name !== 'svc_id');
  const inserted = columns.map(({ name, required }) =>
    required ? `s.${name}` : `coalesce(s.${name}, ${defaults.get(name) ?? 'null'})`,
  );
  const updated = others.map(({ name, required }) => (required ? `s.${name}` : `coalesce(s.${name}, t.${name})`));
  const differs = `(${others.map(({ name }) => `t.${name}`).join(', ')}) is distinct from (${updated.join(', ')})`;
  const table = `public.${kind}`;
  const insert = `insert into ${table} (${names.join(', ')}) select ${inserted.join(', ')} from ${batch} s`;
  return {
    // In a first load of a sorted file every row is new, and no row needs a search.
    count: `
      select rows, not exists (select from ${table} t where t.svc_id between first and last) as is_new
        from (select count(*)::integer as rows, min(svc_id) as first, max(svc_id) as last ${range}) s`,
    compare: `
      select count(*)::integer as known, (count(*) filter (where ${differs}))::integer as changed
        from (select * ${range}) s
        join ${table} t on t.svc_id = s.svc_id`,
    insertAll: `${insert} order by s.line`,
    insertMissing: `${insert} where not exists (select from ${table} t where t.svc_id = s.svc_id) order by s.line`,
    update: `
      update ${table} t
         set ${others.map(({ name }, index) => `${name} = ${updated[index] ?? ''}`).join(', ')}
        from ${batch} s
       where t.svc_id = s.svc_id and ${differs}`,
  };
}
