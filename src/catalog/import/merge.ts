import type { ClientBase } from 'pg';
import type { Column, Kind } from '../columns.js';
import { STAGING } from './staging.js';

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

export interface Staged {
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
  const { count, insert, update } = statements(kind, columns);
  const merged = { created: 0, updated: 0, unchanged: 0 };
  for (let page = 0; page < pages; page += step) {
    signal?.throwIfAborted();
    const range = [`(${page},0)`, `(${page + step},0)`];
    await session.query('begin');
    // Before the first statement that reads the catalogue: one that waits for the lock in its trigger would still see
    // the catalogue from before the wait.
    await session.query('select public.catalog_lock_writers()');
    // Forces index lookups. While a small table fills, the planner's statistics are wrong, and a scan of the whole
    // table for each row takes minutes. On a large table a scan for each batch takes seconds.
    await session.query(
      'set local enable_hashjoin = off; set local enable_mergejoin = off; set local enable_seqscan = off',
    );
    const { rows } = await session.query<{ rows: number }>(count, range);
    const updated = (await session.query(update, range)).rowCount ?? 0;
    const created = (await session.query(insert, range)).rowCount ?? 0;
    await session.query('commit');
    merged.created += created;
    merged.updated += updated;
    merged.unchanged += (rows[0]?.rows ?? 0) - created - updated;
    onBatch({ ...merged });
  }
}

async function countPages(session: ClientBase): Promise<number> {
  const { rows } = await session.query<{ pages: number }>(
    `select (pg_relation_size('${STAGING}') / current_setting('block_size')::bigint)::integer as pages`,
  );
  return rows[0]?.pages ?? 0;
}

/** Makes the statements of one batch, which is a range of the staging table's pages. */
function statements(kind: Kind, columns: readonly Column[]): Readonly<Record<'count' | 'insert' | 'update', string>> {
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
  return {
    count: `select count(*)::integer as rows ${range}`,
    insert: `
      insert into ${table} (${columns.map(({ name }) => name).join(', ')})
      select ${inserted.join(', ')} from ${batch}
       where not exists (select from ${table} t where t.svc_id = s.svc_id)
       order by s.line`,
    update: `
      update ${table} t
         set ${others.map(({ name }, index) => `${name} = ${updated[index] ?? ''}`).join(', ')}
        from ${batch}
       where t.svc_id = s.svc_id
         and (${others.map(({ name }) => `t.${name}`).join(', ')}) is distinct from (${updated.join(', ')})`,
  };
}
