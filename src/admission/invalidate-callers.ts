import type { Fence } from '../platform/postgres/fence.js';
import { ifAvailable, type RedisLink } from '../platform/redis/link.js';
import { renewVersions } from './versions.js';

/** When a change of a key applies on every server: from the next request, or within moments, once it is announced. */
export type Propagation = 'immediate' | 'eventual';

/** @returns when a change applies, as the end of a sentence */
export function applies(propagation: Propagation): string {
  return propagation === 'immediate' ? 'from the next request' : 'within moments';
}

/**
 * Ends a change of keys, developers or plans. Call it after the commit, and before the change is reported as done.
 *
 * @param developerIds - the developers of whom a server may have cached what was changed: all servers drop their
 *   records. Name none if nothing has changed, so that nobody can empty the caches by repeating what makes no
 *   difference.
 * @throws DatabaseSuperseded if the database may no longer be the primary: then the change may be lost
 */
export type EndChange = (developerIds: readonly number[]) => Promise<Propagation>;

/** Announces a change in the Redis that servers share. @returns whether that was possible */
export type Announce = (publish: (redis: RedisLink) => Promise<true>) => Promise<boolean>;

/** Begins a change of keys, developers or plans: from here on, the replacement of the primary is noticed. */
export function beginChange(announce: Announce, fence: Fence): EndChange {
  const timeline = fence.newest;
  return async (developerIds) => {
    const isDone = await announce((redis) => renewVersions(redis, fence, developerIds));
    fence.confirm(timeline);
    return isDone ? 'immediate' : 'eventual';
  };
}

/** @param redis - undefined for a server without one: no server that shares its database may have one */
export function announceIn(redis: RedisLink | undefined): Announce {
  return async (publish) => redis === undefined || (await ifAvailable(publish(redis))) !== undefined;
}
