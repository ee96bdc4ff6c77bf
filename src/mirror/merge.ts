import type { Manifest } from '../copies/manifest.js';
import { fromSeconds } from '../platform/time/micros.js';
import { CONTENT, type MirrorStore } from './store.js';

/** The rows that become the mirror's wait in this table of the session, which an import uses too. */
export const STAGING = 'pg_temp.import_rows';

/** How many rows of the mirror were changed. */
export interface Merged {
  readonly inserted: number;
  readonly changed: number;
  readonly deleted: number;
}

/** Makes a mirror equal to the staged rows and moves it to their position, in one transaction. */
export function replaceByStaged(store: MirrorStore, baseUrl: string, position: number): Promise<Merged> {
  return mergeStaged(store, async () => {
    const merged = await merge(store, 'true', 'true');
    await store.session.query(
      `insert into ${store.schema}.state (base_url, position, copy_position) values ($1, $2, $2)
       on conflict (singleton) do update
          set base_url = excluded.base_url, position = excluded.position, copy_position = excluded.copy_position,
              copied_at = excluded.copied_at, followed_at = excluded.followed_at`,
      [baseUrl, position.toFixed(6)],
    );
    return merged;
  });
}

/**
 * Corrects a mirror by the staged rows of a copy, in one transaction. What the mirror has from later in the feed stays,
 * and so does what it has not reached yet.
 *
 * @throws OperatorError when the copy cannot be compared with the mirror any more
 */
export function repairByStaged(store: MirrorStore, manifest: Manifest): Promise<Merged> {
  return mergeStaged(store, async () => {
    const position = await store.requireComparable(manifest);
    const [copied, reached] = [manifest.position, position].map(
      (seconds) => `timestamptz 'epoch' + ${fromSeconds(seconds)} * interval '1 microsecond'`,
    );
    const isNewer = `t.updated_at > ${copied} and t.updated_at <= ${reached}`;
    return merge(store, `not (${isNewer})`, `s.updated_at::timestamptz <= ${reached}`);
  });
}

async function mergeStaged(store: MirrorStore, work: () => Promise<Merged>): Promise<Merged> {
  // Autovacuum does not see temporary tables.
  await store.session.query(`analyze ${STAGING}`);
  const merged = await store.change(work);
  await store.session.query(`drop table ${STAGING}`);
  return merged;
}

/**
 * Merges the staged rows `s` into the titles `t`. The table stays, with the privileges, views and foreign keys of others.
 *
 * @param mayChange - SQL: whether a row of the mirror may be changed or deleted
 * @param mayTake - SQL: whether a staged row may be taken
 */
async function merge({ session, schema }: MirrorStore, mayChange: string, mayTake: string): Promise<Merged> {
  const titles = `${schema}.titles`;
  const content = CONTENT.join(', ');
  const old = CONTENT.map((name) => `t.${name}`).join(', ');
  const staged = CONTENT.map((name) => `s.${name}${name === 'updated_at' ? '::timestamptz' : ''}`).join(', ');
  const run = async (sql: string): Promise<number> => (await session.query(sql)).rowCount ?? 0;
  const deleted = await run(
    `delete from ${titles} t where ${mayChange} and not exists (select from ${STAGING} s where s.svc_id = t.svc_id)`,
  );
  const changed = await run(
    `update ${titles} t set (${content}) = (${staged}) from ${STAGING} s
      where s.svc_id = t.svc_id and ${mayChange} and ${mayTake} and (${old}) is distinct from (${staged})`,
  );
  const inserted = await run(
    `insert into ${titles} (svc_id, ${content}) select s.svc_id, ${staged} from ${STAGING} s
      where ${mayTake} and not exists (select from ${titles} t where t.svc_id = s.svc_id) order by s.svc_id`,
  );
  return { inserted, changed, deleted };
}
