import type { Propagation } from '../../admission/invalidate-callers.js';
import type { PageContext } from '../parts/context.js';
import type { OperatorParts } from './context.js';

/** What an operator does, for the log. */
interface Act {
  readonly act: string;
  readonly developer?: number;
  readonly key_prefix?: string;
}

/**
 * Makes a change for an operator: events name the operator, servers drop the cached callers of the affected developers,
 * and the log has a line.
 *
 * @param change - its work is committed when it resolves
 * @param affected - the developers of whom a server may have cached what was changed
 * @returns what the change returned, and when it applies
 */
export async function performAct<T>(
  ctx: PageContext,
  { log, beginChange }: OperatorParts,
  act: Act,
  change: () => Promise<T>,
  affected: (result: T) => readonly number[],
): Promise<{ readonly result: T; readonly propagation: Propagation }> {
  const endChange = beginChange();
  const result = await change();
  const developerIds = affected(result);
  // The change is committed, and is logged even if what follows fails.
  log.info({ request_id: ctx.state.requestId, ...act, affects_keys: developerIds.length > 0 }, 'operator act');
  return { result, propagation: await endChange(developerIds) };
}
