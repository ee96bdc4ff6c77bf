import type { Knex } from 'knex';
import { mayCallersBeCached } from '../admission/caching-servers.js';
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
    const since = await makeServersForget(context, db, fence);
    if (fence.newest !== timeline) throw superseded(timeline?.number, fence.newest?.number);
    return { changed, since };
  });
}

/** Sets a new epoch. Without Redis the change still holds, so the command has not failed. */
async function makeServersForget({ withRedis, stderr }: CommandContext, db: Knex, fence: Fence): Promise<string> {
  try {
    if (await withRedis(async (redis) => (await import('../admission/epoch.js')).renewEpoch(redis, fence))) {
      return AT_ONCE;
    }
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    stderr.write(
      `catalog: ${error.message} The change is made. Servers that still reach Redis learn it from the database, within moments.\n`,
    );
    return SOON;
  }
  if (!(await mayCallersBeCached(db))) return AT_ONCE;
  stderr.write(
    'catalog: Servers share a Redis and cache keys, but REDIS_URL is not set here. The change is made, and the servers ' +
      'learn it from the database, within moments. With their REDIS_URL, changes hold from the next request on.\n',
  );
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
