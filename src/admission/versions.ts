import { randomBytes } from 'node:crypto';
import type { Fence } from '../platform/postgres/fence.js';
import { ifAvailable, type RedisLink } from '../platform/redis/link.js';
import { requireForm } from '../platform/redis/reply.js';

/**
 * The version of a developer: a random token in Redis, replaced whenever a change affects the developer's keys.
 * A record that was read from the database under a version is valid as long as that version is there.
 *
 * It begins with the newest timeline of the database that was known when it was created,
 * `<system>/<timeline>/<random>`, so that a server or command that is still connected to an older primary notices.
 */
export interface Version {
  /** Empty if it was never set, has expired, or is lost. */
  readonly token: string;
  /** Of the connection to Redis that it was read over: another server, or this one with older data, must not confirm it. */
  readonly session: number;
}

/** How long a version lives, in milliseconds. A record ends with its version. */
const VERSION_LIFETIME_MS = 7 * 24 * 3_600_000;

/**
 * The newest timeline, `<system>/<timeline>`. Versions expire and this does not, so a server on an older primary cannot
 * replace an expired version of the newer one by its own.
 */
export const TIMELINE_KEY = 'catalog:timeline';

const TIMELINE = /^(\d+)\/(\d+)/;

/** Of a version: enough that no token can be guessed or repeats. */
const RANDOM_BYTES = 12;

/** The most versions that are renewed at once. */
const BATCH_SIZE = 500;

/** @returns the name of a key of a developer. All of them are in one slot of a cluster, for the script that charges. */
export function developerKey(developerId: number, name: string): string {
  return `catalog:{${developerId}}:${name}`;
}

/** @returns the name of the key of a developer's version */
export function versionKey(developerId: number): string {
  return developerKey(developerId, 'version');
}

/**
 * Sets the timeline, or renews a version, unless the key has that value or names a newer timeline of the same system. A
 * version that is not there needs no renewal, since it confirms nothing, and a server that creates it reads its records
 * afterwards.
 *
 * KEYS: the key. ARGV: the new value, its system and timeline, and for a version its lifetime in milliseconds. Reply: the
 * value afterwards.
 */
const SET_UNLESS_NEWER = `
local current = redis.call('get', KEYS[1]) or ''
if ARGV[4] and current == '' then return current end
local system, timeline = string.match(current, '^(%d+)/(%d+)')
if current == ARGV[1] or system == ARGV[2] and tonumber(timeline) > tonumber(ARGV[3]) then return current end
if ARGV[4] then redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[4]) else redis.call('set', KEYS[1], ARGV[1]) end
return ARGV[1]
`;

/** Raises the fence if a version or the published timeline is newer. */
export function observeTimeline(fence: Fence, value: string): void {
  const [, system, number] = TIMELINE.exec(value) ?? [];
  if (system !== undefined) fence.observe({ system, number: Number(number) });
}

/**
 * Publishes the timeline of the database, or raises the fence if a newer one was published.
 *
 * @throws RedisUnavailable
 */
export async function publishTimeline(redis: RedisLink, fence: Fence): Promise<void> {
  const { system, number } = timelineOf(fence);
  await setUnlessNewer(redis, fence, TIMELINE_KEY, `${system}/${number}`);
}

/**
 * Creates a developer's missing version. It confirms no record that was kept before. A server on an older primary finds
 * that out first: the version that was there may have been of the newer one.
 *
 * @returns undefined if somebody else was quicker
 * @throws RedisUnavailable
 */
export async function createVersion(redis: RedisLink, fence: Fence, developerId: number): Promise<Version | undefined> {
  await publishTimeline(redis, fence);
  const key = versionKey(developerId);
  const token = newToken(fence);
  return redis.run(key, async (client, session) => {
    const reply: unknown = await client.set(key, token, 'PX', VERSION_LIFETIME_MS, 'NX');
    requireForm(reply === 'OK' || reply === null);
    return reply === null ? undefined : { token, session };
  });
}

/**
 * Renews the versions of developers, so that every server reads their keys from the database again. Call it after a
 * change is committed, and before it is reported as done. If another server has become the primary, the fence is raised.
 *
 * @returns the developers whose versions could not be renewed, since Redis or a shard of it is lost
 */
export async function renewVersions(
  redis: RedisLink,
  fence: Fence,
  developerIds: readonly number[],
): Promise<readonly number[]> {
  const left: number[] = [];
  for (let i = 0; i < developerIds.length; i += BATCH_SIZE) {
    await Promise.all(
      developerIds.slice(i, i + BATCH_SIZE).map(async (id) => {
        const renewal = setUnlessNewer(redis, fence, versionKey(id), newToken(fence), VERSION_LIFETIME_MS);
        if ((await ifAvailable(renewal)) === undefined) left.push(id);
      }),
    );
  }
  return left;
}

async function setUnlessNewer(
  redis: RedisLink,
  fence: Fence,
  key: string,
  value: string,
  ...lifetimeMs: readonly number[]
): Promise<true> {
  const { system, number } = timelineOf(fence);
  const now = await redis.run(key, async (client) => {
    const reply = await client.eval(SET_UNLESS_NEWER, 1, key, value, system, number, ...lifetimeMs);
    requireForm(typeof reply === 'string');
    return reply;
  });
  observeTimeline(fence, now);
  return true;
}

/** Every connection of a server and a command has set a timeline. */
function timelineOf({ newest }: Fence): { readonly system: string; readonly number: number } {
  return newest ?? { system: '0', number: 0 };
}

function newToken(fence: Fence): string {
  const { system, number } = timelineOf(fence);
  return `${system}/${number}/${randomBytes(RANDOM_BYTES).toString('base64url')}`;
}
