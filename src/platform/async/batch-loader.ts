import DataLoader from 'dataloader';

/**
 * The most calls that share one load. All of them continue when it ends, and nothing else runs meanwhile. With larger
 * batches all requests wait for one load, and the process has nothing to do. With 64 it serves a fifth fewer requests.
 */
const MAX_BATCH_SIZE = 16;

/** Loads a value, or gives the error in its place, for each key in order. */
export type LoadAll<Key, Value> = (keys: readonly Key[]) => Promise<readonly (Value | Error)[]>;

export interface BatchLoaderOptions {
  /** The most calls that share one load; 1 gives each call its own load. */
  readonly maxBatchSize?: number | undefined;
  /** Resolves when a load may begin. Its batch grows until then. */
  readonly waitForTurn?: (() => Promise<void>) | undefined;
}

/**
 * Makes calls of the same turn of the event loop share one load. The load begins after each of them was made, and
 * nothing is kept. A call therefore sees all that happened before it, and a later call never gets an earlier answer.
 *
 * @returns a function that loads the value of one key
 */
export function batchLoader<Key, Value>(
  loadAll: LoadAll<Key, Value>,
  { maxBatchSize = MAX_BATCH_SIZE, waitForTurn }: BatchLoaderOptions = {},
): (key: Key) => Promise<Value> {
  const loader = new DataLoader<Key, Value>(loadAll, {
    cache: false,
    maxBatchSize,
    // By then, every request of this turn has made its call.
    batchScheduleFn: (send) => setImmediate(waitForTurn === undefined ? send : () => void waitForTurn().then(send)),
  });
  return (key) => loader.load(key);
}
