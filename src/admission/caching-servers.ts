import type { Knex } from 'knex';
import type { AdvisoryLock } from '../platform/postgres/notifications.js';

/**
 * The connection for announcements of a server holds this lock, shared. A server caches keys, developers and plans only
 * while that connection is open. So the lock shows that a server may cache them. 'cach' in ASCII, and 1.
 */
export const CACHING_LOCK: AdvisoryLock = [0x63616368, 1];

/**
 * Whether there are servers that may cache keys, developers and plans; versions without the lock do not count. A query that
 * fails counts as yes. Callers ask after a change that is made, which must not look failed.
 */
export async function mayCallersBeCached(db: Knex): Promise<boolean> {
  const [classId, objectId] = CACHING_LOCK;
  // objsubid is 2 for a key of two numbers (PostgreSQL, pg_locks).
  try {
    const { rows } = await db.raw<{ rows: { cached: boolean }[] }>(
      `select exists (
         select from pg_catalog.pg_locks
          where locktype = 'advisory' and (classid, objid, objsubid) = (?::oid, ?::oid, 2)
            and database = (select oid from pg_catalog.pg_database where datname = current_database())
       ) as cached`,
      [classId, objectId],
    );
    return rows[0]?.cached === true;
  } catch {
    return true;
  }
}
