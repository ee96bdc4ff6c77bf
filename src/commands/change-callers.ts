import type { Knex } from 'knex';
import { mayCallersBeCached } from '../admission/caching-servers.js';
import { OperatorError } from '../errors.js';
import type { CommandContext } from './context.js';

/** Since when a change holds, in words. */
const AT_ONCE = 'from the next request on';
const SOON = 'within moments';

/**
 * Changes keys, developers or plans, and makes the servers see the change.
 *
 * @returns what the change returned, and {@link makeServersForget since when} it holds
 */
export function changeCallers<T>(
  context: CommandContext,
  change: (db: Knex) => Promise<T>,
): Promise<{ readonly changed: T; readonly since: string }> {
  return context.withDatabase(async (db) => ({
    changed: await change(db),
    since: await makeServersForget(context, db),
  }));
}

/**
 * Makes all servers forget the callers that they have cached, by a new epoch. Call it after the commit of a change, and
 * before the command reports success. Without Redis the change still holds, so the command has not failed.
 *
 * @returns since when the change holds, in words; when that is not the next request, stderr gives the reason
 */
export async function makeServersForget({ withRedis, stderr }: CommandContext, db: Knex): Promise<string> {
  try {
    if (await withRedis(async (redis) => (await import('../admission/epoch.js')).renewEpoch(redis))) return AT_ONCE;
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
