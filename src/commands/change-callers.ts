import type { Knex } from 'knex';
import { OperatorError } from '../errors.js';
import type { Fence } from '../platform/postgres/fence.js';
import type { CommandContext } from './context.js';

/** Since when a change holds, in words. */
const AT_ONCE = 'from the next request on';
const SOON = 'within moments';

/**
 * Changes keys, developers or plans, and makes the servers see the change before the command reports success.
 *
 * @returns what the change returned, and since when it holds, in words. When that is not the next request, stderr gives the
 *   reason.
 * @throws OperatorError when the database is no longer the primary: then the change does not hold
 */
export function changeCallers<T>(
  context: CommandContext,
  change: (db: Knex) => Promise<T>,
): Promise<{ readonly changed: T; readonly since: string }> {
  return context.withDatabase(async (db, fence) => {
    const timeline = fence.newest;
    const changed = await change(db);
    const since = await invalidateCallers(context, fence);
    if (fence.newest !== timeline) throw superseded(timeline?.number, fence.newest?.number);
    return { changed, since };
  });
}

/** Sets a new epoch. Without Redis the change still holds, so the command has not failed. */
async function invalidateCallers({ config, withRedis, stderr }: CommandContext, fence: Fence): Promise<string> {
  let caution = 'REDIS_URL is not set here: servers that share a Redis apply the change within moments.';
  try {
    const epoch = await withRedis(async (redis) => (await import('../admission/epoch.js')).renewEpoch(redis, fence));
    // Whoever tries the service out on the embedded database has one server.
    if (epoch !== undefined || config().databaseUrl === undefined) return AT_ONCE;
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    caution = `${error.message} The change is made. Servers that can still reach Redis apply it within moments, through the database.`;
  }
  stderr.write(`catalog: ${caution}\n`);
  return SOON;
}

function superseded(own = 0, newest = 0): OperatorError {
  return new OperatorError(
    `The database named by DATABASE_URL is no longer the primary: it is on timeline ${own}, and another server was ` +
      `promoted and began timeline ${newest}. The change was made in the old database alone and does not hold. Set ` +
      'DATABASE_URL to the new primary and run this command again. If you restored this older copy on purpose, see ' +
      '"Restoring a backup" in the guide for operators.',
  );
}
