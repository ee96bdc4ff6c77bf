import { randomUUID } from 'node:crypto';
import { redisKey, type RedisLink } from '../platform/redis/link.js';

/**
 * The epoch: a random token in Redis, replaced after each change of what a key may do. A record that was read from the
 * database under an epoch holds as long as that epoch does.
 */
export const EPOCH_KEY = redisKey('epoch');

/**
 * Sets a new epoch, so that every server asks the database again. Call it after the change is committed, and before the
 * change is reported as done.
 *
 * @returns true
 * @throws RedisUnavailable; servers that still reach Redis hear of the change from the database
 */
export async function renewEpoch(redis: RedisLink): Promise<true> {
  await redis.run((client) => client.set(EPOCH_KEY, randomUUID()));
  return true;
}

/**
 * Reads the epoch. When there is none, as in a Redis that was emptied, it begins one for later requests. This request
 * cannot trust it: an absent token says nothing about earlier changes. An empty token counts as none.
 *
 * @returns undefined when there was none
 * @throws RedisUnavailable
 */
export async function readOrBeginEpoch(redis: RedisLink): Promise<string | undefined> {
  const epoch = await redis.run((client) => client.get(EPOCH_KEY));
  if (epoch !== null && epoch !== '') return epoch;
  const token = randomUUID();
  await redis.run((client) => (epoch === null ? client.set(EPOCH_KEY, token, 'NX') : client.set(EPOCH_KEY, token)));
  return undefined;
}
