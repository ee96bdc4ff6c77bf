import type { Knex } from 'knex';
import { batchLoader } from '../async/batch-loader.js';
import { isDatabaseUnavailable } from './errors.js';

export type KeyedRead<Key, Value> = (db: Knex, key: Key) => Promise<Value>;

/**
 * Makes requests that arrive together share one query. The query is sent after each of them has arrived, so a request
 * sees everything that was committed before it. A request that arrives later waits for the next query.
 *
 * If PostgreSQL refuses a query, each request repeats it on its own: one key may be at fault, and the error may quote
 * it.
 *
 * @param readAll - reads a value, or the error in its place, for each key in order
 * @example
 *   const findTitle = batched((db, ids: readonly string[]) => findTitles(db, ids));
 *   await findTitle(db, 'blade-runner-1982');
 */
export function batched<Key, Value>(
  readAll: (db: Knex, keys: readonly Key[]) => Promise<readonly (Value | Error)[]>,
): KeyedRead<Key, Value> {
  const loads = new WeakMap<Knex, (key: Key) => Promise<Value>>();

  async function readAlone(db: Knex, keys: readonly Key[], failure: unknown): Promise<readonly (Value | Error)[]> {
    if (keys.length === 1 || isDatabaseUnavailable(failure)) throw failure;
    const reads = await Promise.allSettled(keys.map((key) => readAll(db, [key])));
    return reads.map((read) => (read.status === 'fulfilled' ? (read.value[0] as Value) : (read.reason as Error)));
  }

  return (db, key) => {
    let load = loads.get(db);
    if (load === undefined) {
      load = batchLoader<Key, Value>((keys) => readAll(db, keys).catch((error: unknown) => readAlone(db, keys, error)));
      loads.set(db, load);
    }
    return load(key);
  };
}

/** Like {@link batched}, for reads without a key. */
export function coalesced<Value>(read: (db: Knex) => Promise<Value>): (db: Knex) => Promise<Value> {
  const load = batched<true, Promise<Value>>((db, requests) => {
    const value = read(db);
    return Promise.resolve(requests.map(() => value));
  });
  return async (db) => load(db, true);
}
