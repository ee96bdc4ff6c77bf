import { FailedAddresses } from '../../limits/failed-addresses.js';
import { FailedAttempts } from '../../limits/failed-attempts.js';
import type { RedisLink } from '../../platform/redis/link.js';
import type { ServiceOptions } from '../options.js';

/** What failed, by the address that it came from. */
export interface Failures {
  readonly keys: FailedAttempts;
  /** Reports of keys that this service does not have. */
  readonly reports: FailedAttempts;
  /** For operators. */
  readonly addresses: FailedAddresses;
}

/** Creates the counters of failures. */
export function countFailures({ config, overrides }: ServiceOptions, redis: RedisLink | undefined): Failures {
  const policy = overrides?.failurePolicy;
  const addresses = new FailedAddresses(redis);
  return {
    keys: new FailedAttempts(redis, policy, 'failures', config.operatorPages ? addresses : undefined),
    reports: new FailedAttempts(redis, policy, 'report-failures'),
    addresses,
  };
}
