import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { Knex } from 'knex';

/** How often a key must have been refused after its end. */
const REFUSALS = 5;

/** How long before its end a key is used without pause, in milliseconds. */
const BEFORE_END_MS = 150;

/** Lives of keys that are tried, in seconds: a busy machine needs longer to use a key some times. */
const LIVES = [2, 8, 32, 128];

/**
 * Does what must be done before keys expire. When it fails because they have, it is done again with keys that live
 * longer.
 *
 * @param act - makes keys that live for some seconds, and uses them
 */
export async function whileAlive<T>(act: (seconds: number) => Promise<T>): Promise<T> {
  for (const [index, seconds] of LIVES.entries()) {
    const startedAt = performance.now();
    try {
      return await act(seconds);
    } catch (error) {
      const isTooSlow = performance.now() - startedAt > seconds * 1_000;
      if (!isTooSlow || index === LIVES.length - 1) throw error;
    }
  }
  return assert.fail('there is no life to try');
}

/** Sets when a key expires, some milliseconds from now, by the database's clock. */
export async function expireIn(db: Knex, prefix: string, ms: number): Promise<void> {
  await db('api_keys')
    .where({ prefix })
    .update({ expires_at: db.raw("clock_timestamp() + ? * interval '1 millisecond'", [ms]) });
}

/**
 * Uses a key once, and shortly before its end again until it has been refused some times. Compares each answer with the
 * database's clock: before the key's end it must be 200, and after the end 401. A request that is under way at the end
 * may get either.
 *
 * @param ask - for the status of one answer
 * @returns how many requests were served
 */
export async function assertEndsInTime(db: Knex, prefix: string, ask: () => Promise<number>): Promise<number> {
  /** In milliseconds. */
  async function timeLeft(): Promise<number> {
    const [row] = await db('api_keys')
      .where({ prefix })
      .select<{ left: number }[]>(db.raw('(extract(epoch from expires_at - clock_timestamp()) * 1000)::float as left'));
    return row?.left ?? assert.fail('there is no such key');
  }
  let served = 0;
  for (let refused = 0; refused < REFUSALS;) {
    const endedBefore = (await timeLeft()) <= 0;
    const status = await ask();
    const left = await timeLeft();
    if (endedBefore) assert.equal(status, 401, 'the key was accepted after its end');
    else if (left > 0) assert.equal(status, 200, 'the key was refused before its end');
    if (status === 200) served += 1;
    else refused += 1;
    await delay(Math.max(0, left - BEFORE_END_MS));
  }
  return served;
}
