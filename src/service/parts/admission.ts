import { callerLoader } from '../../admission/callers.js';
import { openLocalAdmission, openSharedAdmission, type OpenedAdmission } from '../../admission/open-admission.js';
import { redisAddressOf } from '../../config/config.js';
import type { ConnectedDatabase } from '../../platform/postgres/connect.js';
import type { CloseStack } from '../../platform/process/close-stack.js';
import type { Health } from '../../platform/telemetry/health.js';
import type { SteadyClock } from '../../platform/time/steady-clock.js';
import { timeBounds } from './databases.js';
import type { ServiceOptions } from '../options.js';

/** How much longer than its request a lookup of a key waits for its turn, in milliseconds. */
const LOOKUP_MARGIN_MS = 100;

/** Opens admission: with a cache and limits for all servers where there is a Redis, otherwise for this process alone. */
export async function openAdmission(
  { config, log }: ServiceOptions,
  health: Health,
  clock: SteadyClock,
  { db, fence, connectDedicated }: ConnectedDatabase,
  opened: CloseStack,
): Promise<OpenedAdmission> {
  // Loading callers leaves half of the connections to requests whose caller is known.
  const connections = Math.floor(config.databasePoolSize / 2);
  const loadCaller = callerLoader(db, connections, clock, config.requestTimeoutMs + LOOKUP_MARGIN_MS);
  const address = redisAddressOf(config);
  if (address === undefined) return openLocalAdmission({ loadCaller, fence });
  const admission = await openSharedAdmission({
    loadCaller,
    fence,
    clock,
    address,
    timeoutMs: timeBounds(config).redisMs,
    connectDedicated,
    onChange: (dependency, state, error) => health.note(dependency, state, error),
    onSentinelLost: (err) => log.warn({ err }, 'a Sentinel cannot be reached'),
  });
  return opened.add(admission, (it) => it.close());
}
