import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { CopyUnusable, fileOf, type CopyFile, type Manifest } from '../../copies/manifest.js';
import { sqlState } from '../../platform/postgres/errors.js';
import { printable } from '../../platform/text/plain-text.js';
import { countOf, formatCount } from '../../platform/text/count.js';
import { OperatorError } from '../../errors.js';
import type { RetryOptions } from '../retry.js';
import { damaged, type CopySource, type PartialFile } from './copy-source.js';
import { forget } from './kept.js';
import { CONTENT, contentOf, ENTRY, requireFields, TITLE_COLUMNS } from './tables.js';
import type { MirrorStore } from './store.js';

/** The titles that a mirror is compared with wait in this table of the session. */
export const STAGING = 'pg_temp.staged';

/** How a row of a mirror differs from the staged one. */
export const FAULTS = ['missing', 'changed', 'stamp', 'extra'] as const;

/** How many rows differ in each way. Newer ones are no fault: the mirror is further in the feed. */
export type RowCounts = Readonly<Record<(typeof FAULTS)[number] | 'newer', number>>;

/** SQLSTATEs of data that the table cannot hold: a row is malformed, incomplete, repeated or too long. */
const INVALID_DATA = /^(?:2[23]|54000)/;

/** The longest line of a copy that is read, in bytes: five times the longest title, all of it escaped. */
const MAX_LINE_BYTES = 64 * 1024;

/** How much of a copy is staged by one statement, in bytes. */
const BATCH_BYTES = 256 * 1024;

/** Creates an empty staging table. */
async function createStaging(store: MirrorStore): Promise<void> {
  await store.query(`drop table if exists ${STAGING}; create temporary table staged (${TITLE_COLUMNS})`);
}

/** Stages the newest form of each title on the pages of the feed that are kept. @returns the number of titles */
export async function stagePages(store: MirrorStore): Promise<number> {
  await createStaging(store);
  const staging = store.query(
    `insert into ${STAGING}
     select distinct on (svc_id) entry.*
       from ${store.schema}.kept, json_to_recordset(convert_from(content, 'UTF8')::json) as entry(${ENTRY})
      order by svc_id, updated_at desc`,
  );
  const { rowCount } = await staging.catch(async (error: unknown) => {
    // The service may send a valid page the next time.
    if (INVALID_DATA.test(sqlState(error))) await forget(store);
    throw error;
  });
  return rowCount ?? 0;
}

/**
 * Loads the titles of a copy into the staging table of the session, and requires that they match the manifest.
 *
 * @param kept - the downloads of an earlier run, and where further ones are kept
 * @throws CopyUnusable when they are not; as CopySource.downloadTitles() does; DatabaseUnavailable
 */
export async function stageCopy(
  store: MirrorStore,
  manifest: Manifest,
  source: CopySource,
  retry: RetryOptions,
  kept?: PartialFile,
): Promise<void> {
  const file = fileOf(manifest, 'titles');
  const { name, bytes: total, rows: expected } = file;
  requireFields(file);
  const failed = new AbortController();
  const show = (phase: string, rows: number, bytes: number, total?: number): void =>
    retry.observe?.({ kind: 'progress', progress: { phase, rows, bytes, total } });
  async function* compressed(): AsyncGenerator<Buffer> {
    let bytes = 0;
    const untilThen = { ...retry, signal: AbortSignal.any([retry.signal, failed.signal]) };
    for await (const piece of source.downloadTitles(manifest, untilThen, kept)) {
      yield piece;
      bytes += piece.length;
      show('reading', Math.floor((expected * bytes) / total), bytes, total);
    }
  }
  let staged = 0;
  const stage = async (pieces: AsyncIterable<Buffer>): Promise<void> => {
    for await (const lines of wholeLines(file, pieces)) staged += await stageLines(store, lines);
  };
  try {
    await createStaging(store);
    await pipeline(compressed, createGunzip({ chunkSize: BATCH_BYTES }), (pieces: AsyncIterable<Buffer>) =>
      stage(pieces).catch((error: unknown) => {
        // The download may wait for its host. It ends with the same error, since the pipeline reports either.
        failed.abort(error);
        throw error;
      }),
    );
    show('comparing', expected, total);
    if (staged !== expected) {
      throw new CopyUnusable(
        `The file ${name} of the published copy has ${staged} rows, but the manifest lists ${expected}.`,
      );
    }
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    const { message, code } = error as NodeJS.ErrnoException;
    if (code?.startsWith('Z_')) throw damaged(name, message);
    if (INVALID_DATA.test(sqlState(error))) {
      throw new CopyUnusable(`The file ${name} of the published copy is not valid: ${printable(message)}.`, {
        cause: error,
      });
    }
    throw error;
  }
}

/**
 * Regroups the pieces of a file, so that each has whole lines. Bounds the size of the file, and of a line whose end is
 * not there yet.
 */
async function* wholeLines(
  { name, decoded_bytes: most }: CopyFile,
  pieces: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer> {
  let bytes = 0;
  let rest = Buffer.alloc(0);
  for await (const piece of pieces) {
    bytes += piece.length;
    if (bytes > most) throw damaged(name, `it decodes to more than ${most} bytes`);
    const text = Buffer.concat([rest, piece]);
    const end = text.lastIndexOf('\n');
    rest = text.subarray(end + 1);
    if (rest.length > MAX_LINE_BYTES) throw damaged(name, `it has a line of more than ${MAX_LINE_BYTES} bytes`);
    if (end > 0) yield text.subarray(0, end);
  }
  if (rest.length > 0) yield rest;
}

/** @param lines - rows as JSON objects @returns the number of rows */
async function stageLines(store: MirrorStore, lines: Buffer): Promise<number> {
  // In JSON, a line feed occurs only between values.
  const rows = `[${lines.toString().replaceAll('\n', ',')}]`;
  const { rowCount } = await store.query(
    `insert into ${STAGING} select entry.* from json_to_recordset($1) as entry(${ENTRY})`,
    [rows],
  );
  return rowCount ?? 0;
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
export async function findDifferences(store: MirrorStore, copied = Infinity, reached = Infinity): Promise<RowCounts> {
  // Autovacuum, which also analyzes, does not see temporary tables.
  await store.query(
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
       from ${STAGING} s full join ${store.schema}.titles t using (svc_id)
      where (${contentOf('s')}) is distinct from (${contentOf('t')});
     analyze pg_temp.differences`,
  );
  const { rows } = await store.query<{ difference: keyof RowCounts; rows: number }>(
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
export async function correctFaults(store: MirrorStore, { extra }: RowCounts, allowRemovals: boolean): Promise<void> {
  if (extra > 0 && !allowRemovals) {
    const { rows: counted } = await store.query<{ rows: number }>(
      `select count(*) as rows from ${store.schema}.titles`,
    );
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
  await store.query(
    `delete from ${store.schema}.titles t using pg_temp.differences d where d.svc_id = t.svc_id and d.difference = 'extra';
     update ${store.schema}.titles t set (${CONTENT}) = (${contentOf('s')})
       from ${STAGING} s join pg_temp.differences d using (svc_id)
      where s.svc_id = t.svc_id and d.difference in ('changed', 'stamp');
     insert into ${store.schema}.titles (svc_id, ${CONTENT})
     select svc_id, ${CONTENT} from ${STAGING} s join pg_temp.differences d using (svc_id)
      where d.difference = 'missing' order by svc_id`,
  );
}
