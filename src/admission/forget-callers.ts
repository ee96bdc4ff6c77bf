import type { Fence } from '../platform/postgres/fence.js';
import { ifAvailable, type RedisLink } from '../platform/redis/link.js';
import { publishTimeline, renewEpoch } from './epoch.js';

/** Since when every server knows of a change of a key: from the next request on, or within moments. */
export type Propagation = 'now' | 'moments';

/**
 * Ends a change of keys, developers or plans. Call it after the commit, and before anything is reported.
 *
 * @param isChanged - whether a server may have cached what was changed: then all servers forget the callers that they have
 *   cached. Otherwise they keep them, so that nobody can empty the caches by repeating what makes no difference.
 * @throws DatabaseSuperseded when what was read or written may be in a database that is no longer the primary
 */
export type EndChange = (isChanged: boolean) => Promise<Propagation>;

/**
 * Begins a change of keys, developers or plans: from here on, a primary that is replaced is noticed.
 *
 * @param redis - undefined for a server without one. Then servers that share one apply the change within moments, but
 *   such a server takes it that there are none.
 * @returns what ends it
 */
export function beginChange(redis: RedisLink | undefined, fence: Fence): EndChange {
  const timeline = fence.newest;
  return async (isChanged) => {
    const end = isChanged ? renewEpoch : publishTimeline;
    const isDone = redis === undefined || (await ifAvailable(end(redis, fence))) !== undefined;
    fence.confirm(timeline);
    return isDone ? 'now' : 'moments';
  };
}
