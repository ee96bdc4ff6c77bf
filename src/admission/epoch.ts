import { randomUUID } from 'node:crypto';
import type { Fence } from '../platform/postgres/fence.js';
import { redisKey, type RedisLink } from '../platform/redis/link.js';

/**
 * The epoch: a random token in Redis, replaced after each change of what a key may do. A record that was read from the
 * database under an epoch is valid as long as that epoch is there.
 *
 * It begins with the newest timeline of the database that a server or command has connected to,
 * `<system>/<timeline>/<random>`, so that a server or command that is still connected to an older primary notices.
 */
export const EPOCH_KEY = redisKey('epoch');

const TIMELINE = /^(\d+)\/(\d+)\//;

/**
 * Sets an epoch, unless the current one names a newer timeline of the same system; with `create`, also unless it names
 * this timeline.
 *
 * KEYS: the epoch. ARGV: the new epoch, its system and timeline, and `renew` or `create`. Reply: the epoch afterwards.
 */
const SET_EPOCH = `
local current = redis.call('get', KEYS[1]) or ''
local system, timeline = string.match(current, '^(%d+)/(%d+)/')
if system == ARGV[2] then
  local ahead = tonumber(timeline) - tonumber(ARGV[3])
  if ahead > 0 or (ahead == 0 and ARGV[4] == 'create') then return current end
end
redis.call('set', KEYS[1], ARGV[1])
return ARGV[1]
`;

/** Raises the fence if an epoch names a newer timeline. */
export function observeEpoch(fence: Fence, epoch: string): void {
  const [, system, number] = TIMELINE.exec(epoch) ?? [];
  if (system !== undefined) fence.observe({ system, number: Number(number) });
}

/**
 * Sets an epoch, so that every server queries the database again. If another server has become the primary, the fence
 * is raised and the epoch stays.
 *
 * @param how - `renew` it after a change is committed, and before it is reported as done; or `create` one if none of
 *   this timeline is there
 * @returns the epoch afterwards
 * @throws RedisUnavailable; the database still announces a change to servers that can reach Redis
 */
export async function setEpoch(redis: RedisLink, fence: Fence, how: 'renew' | 'create'): Promise<string> {
  // Every connection of a server and a command has set a timeline.
  const { system = '0', number = 0 } = fence.newest ?? {};
  const token = `${system}/${number}/${randomUUID()}`;
  const epoch = String(
    await redis.run(EPOCH_KEY, (client) => client.eval(SET_EPOCH, 1, EPOCH_KEY, token, system, number, how)),
  );
  observeEpoch(fence, epoch);
  return epoch;
}
