import type { Knex } from 'knex';
import { repairCounts } from '../../src/catalog/counts.js';
import { fromRfc3339, toRfc3339, type Micros } from '../../src/platform/time/micros.js';
import type { Answer } from '../../src/contract.js';
import { eventually } from './eventually.js';
import { pastTriggers } from './postgres/past-triggers.js';
import type { Reply } from './request.js';

/** Adds titles in one statement, named by their place: `<prefix>-0001`, and so on. */
export async function addTitles(db: Knex, count: number, prefix = 'title'): Promise<void> {
  await db.raw(
    `insert into titles (svc_id, media_type, title)
     select ? || '-' || lpad(i::text, greatest(4, length(i::text)), '0'), case when i % 2 = 1 then 'movie' else 'series' end, 'Title ' || i
       from generate_series(1, ?::integer) as i`,
    [prefix, count],
  );
}

/** Empties the titles, past the rule that they cannot be removed. The counts do not follow. */
export async function removeTitles(db: Knex): Promise<void> {
  await pastTriggers(db, 'titles', (transaction) => transaction('titles').truncate());
}

/** Makes a catalogue as it was at first: empty, with a feed that was never restarted and stamps that start anew. */
export async function emptyCatalogue(db: Knex): Promise<void> {
  await removeTitles(db);
  await db.raw('truncate people, collections');
  await repairCounts(db);
  await db.raw("select setval('titles_last_stamp', 1)");
  await db('catalog_feed').insert({ feed_start: 'epoch' }).onConflict('singleton').merge();
}

/** Adds one title, at the time that the database gives it. */
export function insertTitle(db: Knex, svcId: string): Promise<unknown> {
  return db('titles').insert({ svc_id: svcId, media_type: 'movie', title: 'T' }).then();
}

export async function stampOf(db: Knex, svcId: string): Promise<Micros> {
  const [stamp = ''] = await db('titles').where({ svc_id: svcId }).pluck<string[]>('updated_at');
  return fromRfc3339(stamp);
}

/** The time of the database. */
export async function databaseClock(db: Knex): Promise<Micros> {
  const { rows } = await db.raw<{ rows: [{ now: string }] }>('select clock_timestamp() as now');
  return fromRfc3339(rows[0].now);
}

/** @returns how many writers wait for the one before them */
async function waitingWriters(db: Knex): Promise<number> {
  const { rows } = await db.raw<{ rows: unknown[] }>(
    `select from pg_locks where locktype = 'advisory' and not granted
      and database = (select oid from pg_database where datname = current_database())`,
  );
  return rows.length;
}

/** Waits until so many writers do. */
export async function writersWait(db: Knex, count = 1): Promise<void> {
  await eventually(`${count} writers wait`, async () => (await waitingWriters(db)) === count);
}

/** Puts a title into the feed at a time of one's own, past the rule that the database sets it. */
export async function addTitleAt(db: Knex, svcId: string, stamp: Micros): Promise<void> {
  await pastTriggers(db, 'titles', async (transaction) => {
    const at = toRfc3339(stamp);
    await transaction('titles').insert({
      svc_id: svcId,
      media_type: 'movie',
      title: 'T',
      created_at: at,
      updated_at: at,
    });
  });
}

/** The ids that {@link addTitles} gives, in order. */
export function titleIds(count: number, prefix = 'title'): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}-${String(index + 1).padStart(4, '0')}`);
}

/** The body of a page of changes. */
export function changesOf(reply: Reply): Answer<'getChanges'> {
  if (reply.status !== 200) throw new Error(`${reply.status}: ${reply.text}`);
  return reply.json as Answer<'getChanges'>;
}
