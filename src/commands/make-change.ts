import type { Knex } from 'knex';
import { changeCallers, nobody } from '../admission/change-callers.js';
import { OperatorError, withAdvice } from '../errors.js';
import { isDatabaseUnavailable } from '../platform/postgres/errors.js';
import { DatabaseSuperseded } from '../platform/postgres/fence.js';
import type { RedisLink } from '../platform/redis/link.js';
import type { CommandContext } from './context.js';

/** Also after a connection that was lost during the commit: making the change again does all of it. */
const INCOMPLETE = 'This change did not complete: keys may work as before until this command succeeds.';

/**
 * Changes the database. The change applies on every server when this resolves.
 *
 * @param act - its work is committed when it resolves
 * @param affected - the developers whose callers servers may have cached. Omit it for changes that no cache has.
 * @throws OperatorError if the database is no longer the primary: then the change is lost
 */
export function makeChange<T>(
  context: CommandContext,
  act: (db: Knex) => Promise<T>,
  affected: (result: T, db: Knex) => readonly number[] | Promise<readonly number[]> = nobody,
): Promise<T> {
  return context.withDatabase(async (db, { fence }) => {
    const timeline = fence.newest;
    let hasBegun = false;
    let obstacle = 'REDIS_URL is not set here.';
    const change = async (redis?: RedisLink): Promise<{ readonly result: T }> => {
      hasBegun = true;
      const why = redis === undefined ? obstacle : 'The Redis named by REDIS_URL cannot be reached.';
      const onWait = () => context.stderr.write(`catalog: ${why} Waiting until every server applies the change.\n`);
      const makeIt = changeCallers({ db, fence, redis, onWait });
      return {
        result: await makeIt(
          () => act(db),
          (result) => affected(result, db),
        ),
      };
    };
    // A Redis that cannot be used stops no revocation.
    const inRedis = context.withRedis(change).catch((error: unknown) => {
      if (hasBegun || !(error instanceof OperatorError)) throw error;
      context.stderr.write(`catalog: ${withAdvice(error)}\n`);
      obstacle = 'Redis cannot be used.';
      return undefined;
    });
    try {
      const { result } = (await inRedis) ?? (await change());
      return result;
    } catch (error) {
      if (error instanceof DatabaseSuperseded) throw superseded(timeline?.number, error.newest);
      // Servers count the changes that fail on their pages. Nothing else reports this one.
      if (affected !== nobody && isDatabaseUnavailable(error)) context.stderr.write(`catalog: ${INCOMPLETE}\n`);
      throw error;
    }
  });
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
