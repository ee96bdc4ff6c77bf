import { randomUUID } from 'node:crypto';
import { redisKey, type RedisLink } from '../platform/redis.js';

/**
 * The epoch: a random token in Redis that is set anew whenever keys, developers or plans have changed. A record that was
 * read from the database under one epoch holds as long as that epoch does.
 */
export const EPOCH_KEY = redisKey('epoch');

/**
 * Ends the epoch, so that every server asks the database again. To be called after the change is committed, and before
 * anyone is told that it is done.
 *
 * @throws RedisUnavailable
 */
export async function renewEpoch(redis: RedisLink): Promise<void> {
  await redis.run((client) => client.set(EPOCH_KEY, randomUUID()));
}

/**
 * Reads the epoch. Where there is none, as in a Redis that was emptied, one is begun for those who ask later; it is not
 * trusted yet, since an absent token says nothing about what came before. One that is empty is none.
 *
 * @param until - bound on it, on the clock of `performance.now()`
 * @returns undefined where there was none
 * @throws RedisUnavailable
 */
export async function readEpoch(redis: RedisLink, until = Infinity): Promise<string | undefined> {
  const epoch = await redis.run((client) => client.get(EPOCH_KEY), until);
  if (epoch !== null && epoch !== '') return epoch;
  const token = randomUUID();
  await redis.run(
    (client) => (epoch === null ? client.set(EPOCH_KEY, token, 'NX') : client.set(EPOCH_KEY, token)),
    until,
  );
  return undefined;
}
