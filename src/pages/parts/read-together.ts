import { Semaphore } from '../../platform/async/semaphore.js';

/** Of all pages that this process makes at the same time. The API must keep most connections to the database. */
const MOST_READS = 4;

const turns = new Semaphore(MOST_READS);

type Reads = Readonly<Record<string, () => Promise<unknown>>>;

/**
 * Runs the reads of a page that need nothing of each other in parallel, as far as the API can spare connections. None of
 * them may use this function itself: it would wait for its own turn.
 *
 * @returns their results by their names
 * @example
 *   const { keys, events } = await readTogether({
 *     keys: () => readKeySummary(db, developerId),
 *     events: () => listEvents(db, { developerId, limit: 5 }),
 *   });
 */
export async function readTogether<R extends Reads>(
  reads: R,
): Promise<{ readonly [Name in keyof R]: Awaited<ReturnType<R[Name]>> }> {
  const results = Object.entries(reads).map(async ([name, read]) => {
    await turns.acquire();
    try {
      return [name, await read()];
    } finally {
      turns.release();
    }
  });
  return Object.fromEntries(await Promise.all(results)) as Awaited<ReturnType<typeof readTogether<R>>>;
}
