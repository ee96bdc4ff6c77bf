import { setTimeout as delay } from 'node:timers/promises';
import type { Knex } from 'knex';
import { syntheticId } from '../../support/catalog/synthetic-titles.js';
import { print } from '../measure.js';

export const WRITES_PER_SECOND = 1_000;
const WRITES_PER_TRANSACTION = 10;
const TRANSACTIONS_PER_SECOND = WRITES_PER_SECOND / WRITES_PER_TRANSACTION;

let written = 0;

/**
 * Writes synthetic titles at a steady rate.
 *
 * @param titles - the size of the catalogue
 * @param onWritten - called after each transaction with the seconds since the start
 */
export async function writeSteadily(
  db: Knex,
  titles: number,
  seconds: number,
  onWritten?: (after: number) => Promise<void>,
): Promise<void> {
  const start = performance.now();
  const secondsSoFar = (): number => (performance.now() - start) / 1_000;
  for (let turn = 1; turn <= seconds * TRANSACTIONS_PER_SECOND; turn += 1) {
    const ids = Array.from({ length: WRITES_PER_TRANSACTION }, () => syntheticId((written += 1) % titles));
    // An update that changes nothing would not be in the feed.
    await db('titles')
      .whereIn('svc_id', ids)
      .update({ title: `Written ${written}` });
    await onWritten?.(secondsSoFar());
    await delay(Math.max(0, (turn / TRANSACTIONS_PER_SECOND - secondsSoFar()) * 1_000));
  }
  const rate = (seconds * WRITES_PER_SECOND) / secondsSoFar();
  if (rate < 0.95 * WRITES_PER_SECOND) print(`The machine was busy: only ${Math.round(rate)} writes/s.\n`);
}
