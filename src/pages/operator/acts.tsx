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
 * Makes a change for an operator: events name the operator, servers drop their cached callers, and the log has a line.
 *
 * @param change - its work is committed when it resolves
 * @param isChanged - whether a server may have cached what was changed of the developer
 * @returns what the change returned, and when it applies
 */
export async function performAct<T>(
  ctx: PageContext,
  { log, beginChange }: OperatorParts,
  act: Act,
  change: () => Promise<T>,
  isChanged: (result: T) => boolean = () => true,
): Promise<{ readonly result: T; readonly propagation: Propagation }> {
  const endChange = beginChange();
  const result = await change();
  const affectsKeys = isChanged(result);
  // The change is committed, and is logged even if what follows fails.
  log.info({ request_id: ctx.state.requestId, ...act, affects_keys: affectsKeys }, 'operator act');
  return { result, propagation: await endChange(affectsKeys && act.developer !== undefined ? [act.developer] : []) };
}
