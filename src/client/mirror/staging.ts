import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { from as copyFrom } from 'pg-copy-streams';
import { CopyUnusable, fileOf, type CopyFile, type Manifest } from '../../copies/manifest.js';
import { sqlState } from '../../platform/postgres/errors.js';
import { printable } from '../../platform/text/plain-text.js';
import { countOf, formatCount } from '../../platform/text/count.js';
import { OperatorError } from '../../errors.js';
import type { RetryOptions } from '../retry.js';
import { damaged, type CopySource } from './copy-source.js';
import { CONTENT, ENTRY, TITLE_COLUMNS } from './tables.js';
import type { MirrorStore } from './store.js';

/** The titles that a mirror is compared with wait in this table of the session. */
export const STAGING = 'pg_temp.staged';

/** In what way a row of a mirror differs from the staged one. */
export const FAULTS = ['missing', 'changed', 'stamp', 'extra'] as const;

/** How many rows differ in each way. Newer ones are no fault: the mirror is further in the feed. */
export type RowCounts = Readonly<Record<(typeof FAULTS)[number] | 'newer', number>>;

/** SQLSTATEs of data that the table cannot hold: a row is malformed, incomplete, repeated or too long. */
const INVALID_DATA = /^(?:2[23]|54000)/;

/** The longest line of a copy that is read, in bytes: five times the longest title, all of it escaped. */
const MAX_LINE_BYTES = 64 * 1024;

/** Creates an empty staging table. */
export async function createStaging({ session }: MirrorStore): Promise<void> {
  await session.query(
    `drop table if exists ${STAGING}, pg_temp.lines; create temporary table staged (${TITLE_COLUMNS})`,
  );
}

/**
 * Loads the titles of a copy into the staging table of the session, and requires that they match the manifest.
 *
 * @throws CopyUnusable when they are not; as CopySource.downloadTitles() does; DatabaseUnavailable
 */
export async function stageCopy(
  store: MirrorStore,
  manifest: Manifest,
  source: CopySource,
  retry: RetryOptions,
): Promise<void> {
  const { session } = store;
  const file = fileOf(manifest, 'titles');
  const { name, bytes: total, rows: expected } = file;
  const failed = new AbortController();
  const show = (phase: string, rows: number, bytes: number, total?: number): void =>
    retry.observe?.({ kind: 'progress', progress: { phase, rows, bytes, total } });
  async function* compressed(): AsyncGenerator<Buffer> {
    let bytes = 0;
    const untilThen = { ...retry, signal: AbortSignal.any([retry.signal, failed.signal]) };
    for await (const piece of source.downloadTitles(manifest, untilThen)) {
      yield piece;
      bytes += piece.length;
      show('reading', Math.floor((expected * bytes) / total), bytes, total);
    }
  }
  try {
    await createStaging(store);
    await session.query('create temporary table lines (line json)');
    // As they were written: see copyAsNdjson().
    const copy = copyFrom(`copy pg_temp.lines from stdin (format csv, quote e'\\x01', delimiter e'\\x02')`);
    // The download may wait for its host.
    const stored = session.query(copy).once('error', () => failed.abort());
    await pipeline(compressed, createGunzip(), (pieces) => requireBounds(file, pieces), stored);
    show('comparing', expected, total);
    const { rowCount } = await session.query(
      `insert into ${STAGING} select entry.* from pg_temp.lines, json_to_record(line) as entry(${ENTRY})`,
    );
    if (rowCount !== expected) {
      throw new CopyUnusable(
        `The file ${name} of the published copy has ${rowCount ?? 0} rows, but the manifest lists ${expected}.`,
      );
    }
    await session.query('drop table pg_temp.lines');
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    const { message, code } = error as NodeJS.ErrnoException;
    if (code?.startsWith('Z_')) throw damaged(name, message);
    if (INVALID_DATA.test(sqlState(error))) {
      throw new CopyUnusable(`The file ${name} of the published copy is not valid: ${printable(message)}.`, {
        cause: error,
      });
    }
    throw session.toOwnError(error);
  }
}

/**
 * Requires that the lines of a file are no more than the manifest lists, and none longer than a title can be, before
 * they are stored.
 */
async function* requireBounds(
  { name, decoded_bytes: most, rows }: CopyFile,
  pieces: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer> {
  let [bytes, lines, length] = [0, 0, 0];
  for await (const piece of pieces) {
    bytes += piece.length;
    for (let start = 0, end = 0; end >= 0; start = end + 1) {
      end = piece.indexOf('\n', start);
      length += (end < 0 ? piece.length : end) - start;
      if (length > MAX_LINE_BYTES) throw damaged(name, `it has a line of more than ${MAX_LINE_BYTES} bytes`);
      if (end >= 0) [lines, length] = [lines + 1, 0];
    }
    if (bytes > most) throw damaged(name, `it decodes to more than ${most} bytes`);
    if (lines > rows) throw damaged(name, `it has more than ${rows} lines`);
    yield piece;
  }
}

/** @returns the stamp at a position, as SQL */
export function stampAt(seconds: number): string {
  if (seconds === Infinity) return "'infinity'";
  return `timestamptz 'epoch' + ${Math.round(seconds * 1e6)} * interval '1 microsecond'`;
}

/**
 * Finds the rows that differ from the staged ones, in a transaction: a table of the session keeps them until its end.
 *
 * @param copied - the stamp up to which the staged rows are complete, in seconds. Without it, every row that differs is
 *   a fault
 * @param reached - the furthest position of the mirror: its rows with stamps between `copied` and this are newer than
 *   the staged ones
 */
export async function findDifferences(
  { session, schema }: MirrorStore,
  copied = Infinity,
  reached = Infinity,
): Promise<RowCounts> {
  // A collation of the owner's may take different texts for equal. Autovacuum, which also analyzes, does not see
  // temporary tables.
  await session.query(
    `analyze ${STAGING};
     create temporary table differences on commit drop as
     select svc_id, case
              when t.updated_at > ${stampAt(copied)} and t.updated_at <= ${stampAt(reached)}
                and coalesce(s.updated_at < t.updated_at, true) then 'newer'
              when t.updated_at is null then 'missing'
              when s.updated_at is null then 'extra'
              when s.updated_at = t.updated_at then 'changed'
              else 'stamp'
            end as difference
       from ${STAGING} s full join ${schema}.titles t using (svc_id)
      where (s.media_type collate "C", s.title collate "C", s.updated_at, s.has_bundles)
            is distinct from (t.media_type collate "C", t.title collate "C", t.updated_at, t.has_bundles);
     analyze pg_temp.differences`,
  );
  const { rows } = await session.query<{ difference: keyof RowCounts; rows: number }>(
    'select difference, count(*) as rows from pg_temp.differences group by difference',
  );
  const counts = { missing: 0, changed: 0, stamp: 0, extra: 0, newer: 0 };
  for (const { difference, rows: count } of rows) counts[difference] = count;
  return counts;
}

/**
 * Corrects the faults among the differences that {@link findDifferences} has found in this transaction.
 *
 * @param allowRemovals - also if that removes more than a tenth of the rows, rounded up, or all of them
 * @throws CopyUnusable otherwise
 */
export async function correctFaults(
  { session, schema }: MirrorStore,
  { extra }: RowCounts,
  allowRemovals: boolean,
): Promise<void> {
  if (extra > 0 && !allowRemovals) {
    const { rows: counted } = await session.query<{ rows: number }>(`select count(*) as rows from ${schema}.titles`);
    const { rows = 0 } = counted[0] ?? {};
    if (extra === rows || extra > Math.ceil(rows / 10)) {
      const removals = `${formatCount(extra)} of the mirror's ${countOf(rows, 'row')}`;
      throw new CopyUnusable(`This would remove ${removals}, more than a tenth. Nothing was changed.`, {
        advice:
          'Check that --from leads to the service that you mirror. If its catalogue has lost these titles, run the command ' +
          'once with --allow-removals.',
      });
    }
  }
  await session.query(
    `delete from ${schema}.titles t using pg_temp.differences d where d.svc_id = t.svc_id and d.difference = 'extra';
     update ${schema}.titles t set (${CONTENT}) = (s.media_type, s.title, s.updated_at, s.has_bundles)
       from ${STAGING} s join pg_temp.differences d using (svc_id)
      where s.svc_id = t.svc_id and d.difference in ('changed', 'stamp');
     insert into ${schema}.titles (svc_id, ${CONTENT})
     select svc_id, ${CONTENT} from ${STAGING} s join pg_temp.differences d using (svc_id)
      where d.difference = 'missing' order by svc_id`,
  );
}
