import { join } from 'node:path';
import { lock } from 'proper-lockfile';
import { OperatorError } from '../errors.js';

/** A holder that shows no life for this long is taken for dead (SIGKILL) and loses the mutex, in milliseconds. */
const STALE_AFTER_MS = 5_000;

/** How often a holder shows life, in milliseconds. */
const REFRESH_EVERY_MS = 1_000;

/** The longest wait: enough for somebody else's first start and stop, in milliseconds. */
const MAX_WAIT_MS = 120_000;

/**
 * Runs an action that starts or stops the cluster while no other process does so in the same data directory.
 *
 * The mutex keeps processes from getting in each other's way; it does not guard the data. A holder that was suspended
 * (Ctrl-Z, a sleeping laptop) may find that somebody took over. Everything done under it is safe even then: PostgreSQL's
 * own lock file refuses a second server, a new cluster appears by a rename, and a lease whose server was stopped brings
 * it back.
 *
 * @throws OperatorError when somebody holds the mutex for too long
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
      // By default this would throw from a timer, and end the process.
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
    // Fails when somebody took over, in which case there is nothing to give back.
    await unlock().catch(() => undefined);
  }
}
