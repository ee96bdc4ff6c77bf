import { setTimeout as delay } from 'node:timers/promises';
import type { Knex } from 'knex';
import type { History } from '../history.js';

/** Ids that all writers write to, and rows of the largest transaction, which fill more than a page of the feed. */
const IDS = 400;
const LARGEST = 450;

/** Every so many transactions one is large. */
const LARGE_EVERY = 40;

const PAUSE_MS = 400;

/** Writes titles, one transaction after the other, until the signal. */
export async function writeTitles(db: Knex, history: History, signal: AbortSignal): Promise<void> {
  for (let turn = 1; !signal.aborted; turn += 1) {
    const count = turn % LARGE_EVERY === 0 ? LARGEST : 1 + Math.floor(Math.random() * 4);
    const first = Math.floor(Math.random() * IDS);
    const start = history.now();
    // What fails may have been committed.
    const titles = await write(db, first, count).catch(() => []);
    history.record({ kind: 'commit', titles, start, end: history.now() });
    await delay(PAUSE_MS * (0.5 + Math.random()), undefined, { signal }).catch(() => undefined);
  }
}

async function write(db: Knex, first: number, count: number): Promise<[id: string, stamp: string][]> {
  const { rows } = await db.raw<{ rows: { svc_id: string; updated_at: string }[] }>(
    `insert into titles (svc_id, media_type, title)
     select 'written-' || i, 'movie', 'Version ' || gen_random_uuid() from generate_series(?::integer, ?::integer) as i
     on conflict (svc_id) do update set title = excluded.title
     returning svc_id, updated_at`,
    [first, first + count - 1],
  );
  return rows.map(({ svc_id: id, updated_at: stamp }) => [id, stamp]);
}
