import { randomUUID } from 'node:crypto';
import type { Fence } from '../platform/postgres/fence.js';
import { redisKey, type RedisLink } from '../platform/redis/link.js';

/**
 * The epoch: a random token in Redis, replaced after each change of what a key may do. A record that was read from the
 * database under an epoch holds as long as that epoch does.
 *
 * It begins with the newest timeline of the database that a server or command has connected to,
 * `<system>/<timeline>/<random>`. So whoever is still connected to an older primary finds out. Versions without that wrote
 * the random part alone.
 */
export const EPOCH_KEY = redisKey('epoch');

const TIMELINE = /^(\d+)\/(\d+)\//;

/**
 * Sets an epoch, unless the one that is there names a newer timeline of the same system. With `begin`, only where there is
 * none of this timeline; with `keep`, only where there is none, or one of an older timeline.
 *
 * KEYS: the epoch. ARGV: the new epoch, its system and timeline, and `renew`, `begin` or `keep`. Answer: the epoch that is
 * there now.
 */
const SET_EPOCH = `
local current = redis.call('get', KEYS[1]) or ''
local system, timeline = string.match(current, '^(%d+)/(%d+)/')
if system == ARGV[2] then
  local ahead = tonumber(timeline) - tonumber(ARGV[3])
  if ahead > 0 or (ahead == 0 and ARGV[4] ~= 'renew') then return current end
elseif current ~= '' and ARGV[4] == 'keep' then
  return current
end
redis.call('set', KEYS[1], ARGV[1])
return ARGV[1]
`;

/**
 * Sets a new epoch, so that every server asks the database again. Call it after the change is committed, and before the
 * change is reported as done. Where another server has become the primary, the fence is raised and the epoch stays.
 *
 * @returns the epoch that is there now
 * @throws RedisUnavailable; servers that can still reach Redis are notified by the database
 */
export async function renewEpoch(redis: RedisLink, fence: Fence): Promise<string> {
  return (await setEpoch(redis, fence, 'renew')).epoch;
}

/**
 * Publishes the timeline of the database, where the epoch does not name it yet. Where another server has become the
 * primary, the fence is raised.
 *
 * @returns the epoch that is there now
 * @throws RedisUnavailable
 */
export async function publishTimeline(redis: RedisLink, fence: Fence): Promise<string> {
  return (await setEpoch(redis, fence, 'begin')).epoch;
}

/**
 * Reads the epoch. When there is none, as in a Redis that was emptied, or one of an older timeline, it begins one for later
 * requests. This request cannot trust it: an absent token says nothing about earlier changes.
 *
 * @returns undefined when there was none
 * @throws RedisUnavailable
 */
export async function readOrCreateEpoch(redis: RedisLink, fence: Fence): Promise<string | undefined> {
  const { epoch, isNew } = await setEpoch(redis, fence, 'keep');
  return isNew ? undefined : epoch;
}

/** Takes note of the timeline that an epoch names, if it names one. */
export function observeEpoch(fence: Fence, epoch: string): void {
  const [, system, number] = TIMELINE.exec(epoch) ?? [];
  if (system !== undefined) fence.observe({ system, number: Number(number) });
}

async function setEpoch(redis: RedisLink, fence: Fence, how: 'renew' | 'begin' | 'keep') {
  // Every connection of a server and a command has set a timeline.
  const { system = '0', number = 0 } = fence.newest ?? {};
  const token = `${system}/${number}/${randomUUID()}`;
  const epoch = String(await redis.run((client) => client.eval(SET_EPOCH, 1, EPOCH_KEY, token, system, number, how)));
  observeEpoch(fence, epoch);
  return { epoch, isNew: epoch === token };
}
