import DataLoader from 'dataloader';

/**
 * The most calls that share one load. They all continue when it ends. With larger batches, all requests wait for the
 * same load while the process is idle: with 64, it serves a fifth fewer requests.
 */
const MAX_BATCH_SIZE = 16;

/** Loads a value or an error for each key, in order. */
export type LoadAll<Key, Value> = (keys: readonly Key[]) => Promise<readonly (Value | Error)[]>;

export interface BatchLoaderOptions {
  /** The most calls that share one load; 1 gives each call its own load. */
  readonly maxBatchSize?: number | undefined;
  /** Resolves when a load may begin. Its batch grows until then. */
  readonly waitForTurn?: (() => Promise<void>) | undefined;
}

/**
 * Makes calls of the same turn of the event loop share one load. The load begins after all of them, and nothing is
 * cached. A call therefore sees everything that happened before it, and never an answer from before it.
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
