import type { Fence } from '../platform/postgres/fence.js';
import { ifAvailable, type RedisLink } from '../platform/redis/link.js';
import { renewEpoch } from './epoch.js';

/** Since when every server knows of a change of a key: from the next request on, or within moments. */
export type KnownSince = 'now' | 'moments';

/**
 * Makes all servers forget the callers that they have cached. Call it after the commit of a change of keys, developers or
 * plans, and before the change is reported.
 *
 * @throws DatabaseSuperseded when the change may have been made in a database that is no longer the primary
 */
export type ForgetCallers = () => Promise<KnownSince>;

/**
 * Begins a change of keys, developers or plans: from here on, a primary that is replaced is noticed.
 *
 * @param redis - undefined for a server without one: then no other has one either
 * @returns what ends it
 */
export function beginChange(redis: RedisLink | undefined, fence: Fence): ForgetCallers {
  const timeline = fence.newest;
  return async () => {
    const isDone = redis === undefined || (await ifAvailable(renewEpoch(redis, fence)));
    fence.confirm(timeline);
    return isDone ? 'now' : 'moments';
  };
}
