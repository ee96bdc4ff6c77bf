import type { PageContext } from '../parts/context.js';
import type { OperatorParts } from './context.js';

/** An act of an operator, for the log. */
interface Act {
  readonly act: string;
  readonly developer?: number;
  readonly key_prefix?: string;
}

/**
 * Makes a change for an operator: events name the operator, the change applies on every server when this resolves, and
 * the log has a line.
 *
 * @param change - its work is committed when it resolves
 * @param affected - the developers whose callers a server may have cached
 * @returns the result of the change
 */
export function performAct<T>(
  ctx: PageContext,
  { log, changeCallers }: OperatorParts,
  act: Act,
  change: () => Promise<T>,
  affected: (result: T) => readonly number[],
): Promise<T> {
  return changeCallers(change, (result) => {
    const developerIds = affected(result);
    // The change is committed, and is logged even if a later step fails.
    log.info({ request_id: ctx.state.requestId, ...act, affects_keys: developerIds.length > 0 }, 'operator act');
    return developerIds;
  });
}
