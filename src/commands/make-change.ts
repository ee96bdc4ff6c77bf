import type { Knex } from 'knex';
import type { Announce } from '../admission/invalidate-callers.js';
import { OperatorError } from '../errors.js';
import type { CommandContext } from './context.js';

/** A change that a command has made. */
interface Change<T> {
  /** What the change returned. */
  readonly result: T;
  /** When it applies on every server, in words. */
  readonly applies: string;
}

/**
 * Changes the database, and confirms that it is the primary before the command reports success.
 *
 * @param act - its work is committed when it resolves
 * @param affected - the developers whose cached callers servers drop. If the servers cannot be reached at once, the
 *   reason goes to stderr. Omit it for changes of data that servers do not cache.
 * @throws OperatorError if the database is no longer the primary: then the change is lost
 */
export function makeChange<T>(
  context: CommandContext,
  act: (db: Knex) => Promise<T>,
  affected?: (result: T, db: Knex) => readonly number[] | Promise<readonly number[]>,
): Promise<Change<T>> {
  return context.withDatabase(async (db, { fence }) => {
    const [{ applies, beginChange }, { DatabaseSuperseded }] = await Promise.all([
      import('../admission/invalidate-callers.js'),
      import('../platform/postgres/fence.js'),
    ]);
    const timeline = fence.newest;
    let obstacle: string | undefined;
    const announce: Announce = async (publish) => {
      obstacle = await reachServers(context, publish);
      return obstacle === undefined;
    };
    const endChange = beginChange(announce, fence);
    const result = await act(db);
    const developerIds = (await affected?.(result, db)) ?? [];
    const propagation = await endChange(developerIds).catch((error: unknown) => {
      throw error instanceof DatabaseSuperseded ? superseded(timeline?.number, error.newest) : error;
    });
    if (affected !== undefined && obstacle !== undefined) context.stderr.write(`catalog: ${obstacle}\n`);
    return { result, applies: applies(propagation) };
  });
}

/**
 * Publishes a change. Without Redis it still applies, within moments.
 *
 * @returns why the servers could not be reached; undefined when they were
 */
async function reachServers(
  { config, withRedis }: CommandContext,
  publish: Parameters<Announce>[0],
): Promise<string | undefined> {
  try {
    const reached = await withRedis(publish);
    // On the embedded database there is one server, and it has no Redis.
    if (reached !== undefined || config().databaseUrl === undefined) return undefined;
    return 'REDIS_URL is not set here: servers that share a Redis apply the change within moments.';
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    return `${error.message} The change was saved. Servers that can still reach Redis apply it within moments, through the database.`;
  }
}

function superseded(own = 0, newest = 0): OperatorError {
  return new OperatorError(
    `The database named by DATABASE_URL is no longer the primary: it is on timeline ${own}, but another server was ` +
      `promoted to timeline ${newest}. The change was made only in the old database and is lost.`,
    {
      advice:
        'Set DATABASE_URL to the new primary and run this command again. If you restored this older copy on purpose, ' +
        'see "Restart the feed" in the "Back up and restore" guide.',
    },
  );
}
