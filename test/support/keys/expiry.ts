import assert from 'node:assert/strict';
import type { Knex } from 'knex';

/** How often a key must have been refused after its end. */
const REFUSALS = 5;

/** Sets when a key expires, some milliseconds from now, by the database's clock. */
export async function expireIn(db: Knex, prefix: string, ms: number): Promise<void> {
  await db('api_keys')
    .where({ prefix })
    .update({ expires_at: db.raw("clock_timestamp() + ? * interval '1 millisecond'", [ms]) });
}

/**
 * Uses a key until it has been refused some times, and compares each answer with the database's clock. Before the key's end
 * it must be 200, and after the end 401. A request that is under way at the end may get either.
 *
 * @param ask - for the status of one answer
 * @returns how many requests were served
 */
export async function assertEndsInTime(db: Knex, prefix: string, ask: () => Promise<number>): Promise<number> {
  async function hasEnded(): Promise<boolean> {
    const [row] = await db('api_keys')
      .where({ prefix })
      .select<{ ended: boolean }[]>(db.raw('expires_at <= clock_timestamp() as ended'));
    return row?.ended ?? assert.fail('there is no such key');
  }
  let served = 0;
  for (let refused = 0; refused < REFUSALS;) {
    const endedBefore = await hasEnded();
    const status = await ask();
    if (endedBefore) assert.equal(status, 401, 'the key was accepted after its end');
    else if (!(await hasEnded())) assert.equal(status, 200, 'the key was refused before its end');
    if (status === 200) served += 1;
    else refused += 1;
  }
  return served;
}
