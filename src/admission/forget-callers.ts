import type { Knex } from 'knex';
import { ifAvailable, type RedisLink } from '../platform/redis/link.js';
import { mayCallersBeCached } from './caching-servers.js';
import { renewEpoch } from './epoch.js';

/** Since when every server knows of a change of a key: from the next request on, or within moments. */
export type KnownSince = 'now' | 'moments';

/**
 * Makes all servers forget the callers that they have cached. Call it after the commit of a change of keys, developers or
 * plans, and before the change is reported.
 *
 * @param redis - undefined for a server without one. It cannot set a new epoch, so others learn of the change from the
 *   database.
 */
export async function forgetCallers(redis: RedisLink | undefined, db: Knex): Promise<KnownSince> {
  const isDone = redis ? await ifAvailable(renewEpoch(redis)) : !(await mayCallersBeCached(db));
  return isDone ? 'now' : 'moments';
}
