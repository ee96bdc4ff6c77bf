import type { Redis } from 'ioredis';

/**
 * Requires that a reply has the expected form. For commands of `RedisLink.run`: a Redis with other replies counts as lost.
 *
 * @throws an error that quotes no reply
 */
export function requireForm(isExpected: boolean): asserts isExpected {
  if (!isExpected) throw new Error('Redis sent a reply of another form than expected');
}

/** Reads a counter, and the milliseconds until it ends: 0 and less than 1 for a counter that does not exist. */
export async function readCounter(client: Redis, key: string) {
  const [text, msLeft] = await Promise.all([client.get(key), client.pttl(key)]);
  requireForm(text === null || (typeof text === 'string' && /^\d+$/.test(text)));
  requireForm(typeof msLeft === 'number');
  return { requests: msLeft > 0 ? Number(text) : 0, msLeft };
}
