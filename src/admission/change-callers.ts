import { setTimeout as delay } from 'node:timers/promises';
import type { Knex } from 'knex';
import { mayBeRead } from '../platform/postgres/announcements.js';
import type { Fence } from '../platform/postgres/fence.js';
import { ifAvailable, type RedisLink } from '../platform/redis/link.js';
import { LEASE_MS } from './caller-cache.js';
import { publishTimeline, renewVersions } from './versions.js';

/** Where triggers announce each change of a key, a developer or a plan: db/migrations/013_revocations_unhindered.sql. */
export const ANNOUNCEMENTS = {
  table: 'caller_changes',
  subject: 'developer_id',
  readers: 'caller_change_readers',
} as const;

/** How long a change waits for the leases of all servers. The clocks of two machines differ in speed by far less. */
const LONGEST_WAIT_MS = LEASE_MS * 1.01;

/** The longest time between the commit of a change and its report, in milliseconds: one more attempt ends the wait. */
export const LONGEST_CHANGE_MS = LEASE_MS + 500;

/** The wait between attempts to renew versions, in milliseconds. */
const RETRY_MS = 50;

/**
 * Makes a change of keys, developers or plans, and resolves once it applies on every server. That is when the versions of
 * the affected developers are renewed, or else when every server has looked at the announcements or closed its cache.
 *
 * A change that finds nothing left to do, because somebody else has made it, does all of this again: that one may not be
 * at its end.
 *
 * @param act - its work is committed when it resolves
 * @param affected - the developers whose callers a server may have cached
 * @returns the result of the act
 * @throws DatabaseSuperseded if the database may no longer be the primary: then the change may be lost
 */
export type ChangeCallers = <T>(
  act: () => Promise<T>,
  affected: (result: T) => readonly number[] | Promise<readonly number[]>,
) => Promise<T>;

/** For a change that no cache has. It still fails on a database that is known to have been replaced. */
export const nobody = (): readonly number[] => [];

export interface ChangeParts {
  /** The primary. */
  readonly db: Knex;
  readonly fence: Fence;
  /** Undefined where no Redis is configured. */
  readonly redis: RedisLink | undefined;
  /** Called once when a change is committed and the versions cannot be renewed at once. */
  readonly onWait?: (() => void) | undefined;
}

/** How a wait is measured and made: on a clock that stands still while the machine sleeps, so that no wait is cut short. */
export interface Waiting {
  readonly now: () => number;
  readonly sleep: (ms: number) => Promise<unknown>;
}

const WAITING: Waiting = { now: () => performance.now(), sleep: (ms) => delay(ms) };

/** @returns the function that makes all changes of this process */
export function changeCallers({ db, fence, redis, onWait }: ChangeParts, { now, sleep } = WAITING): ChangeCallers {
  return async (act, affected) => {
    const timeline = fence.newest;
    const result = await act();
    const waitsUntil = now() + LONGEST_WAIT_MS;
    let left = await affected(result);
    // Only its version decides about a key, so a lost shard of the timeline does not hold the change up.
    if (redis !== undefined) await ifAvailable(publishTimeline(redis, fence));
    if (redis !== undefined) left = await renewVersions(redis, fence, left);
    else if (left.length > 0 && !(await mayBeRead(db, ANNOUNCEMENTS))) left = [];
    if (left.length > 0) onWait?.();
    while (left.length > 0 && now() < waitsUntil) {
      await sleep(redis === undefined ? waitsUntil - now() : RETRY_MS);
      if (redis !== undefined) left = await renewVersions(redis, fence, left);
    }
    fence.confirm(timeline);
    return result;
  };
}
