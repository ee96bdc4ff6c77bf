import { join } from 'node:path';
import { lock } from 'proper-lockfile';
import { OperatorError } from '../errors.js';

/** A holder that does not refresh the lock for this long counts as dead and loses it, in milliseconds. */
const STALE_AFTER_MS = 5_000;

/** How often a holder refreshes the lock, in milliseconds. */
const REFRESH_EVERY_MS = 1_000;

/** The longest wait, in milliseconds: enough for the first start and stop of another process. */
const MAX_WAIT_MS = 120_000;

/**
 * Runs an action that starts or stops the cluster while no other process does so in the same data directory.
 *
 * The mutex only keeps processes out of each other's way. A suspended holder (Ctrl-Z, a sleeping laptop) may lose it to
 * another process. All work under the mutex is safe even then. PostgreSQL's own lock file refuses a second server. A
 * new cluster appears by a rename, and a lease restarts a stopped server.
 *
 * @throws OperatorError when another process holds the mutex for too long
 */
export async function withMutex<Result>(dataDirectory: string, action: () => Promise<Result>): Promise<Result> {
  let unlock: () => Promise<void>;
  try {
    unlock = await lock(dataDirectory, {
      lockfilePath: join(dataDirectory, 'lock'),
      stale: STALE_AFTER_MS,
      update: REFRESH_EVERY_MS,
      retries: {
        forever: true,
        maxRetryTime: MAX_WAIT_MS,
        minTimeout: 20,
        maxTimeout: 250,
        factor: 1.5,
        randomize: true,
      },
      // The default throws from a timer, and so ends the process.
      onCompromised: () => undefined,
    });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ELOCKED') throw error;
    throw new OperatorError(
      `Another process has been starting or stopping PostgreSQL in ${dataDirectory} for more than ` +
        `${MAX_WAIT_MS / 1000} s. Look for one that hangs.`,
      { cause: error },
    );
  }
  try {
    return await action();
  } finally {
    // Fails when another process took the mutex over. Then there is nothing to release.
    await unlock().catch(() => undefined);
  }
}
