import { toAdmission, type Admit } from './admission.js';
import type { ProcessLimiter } from './charge/process-limiter.js';
import type { Lookups } from './lookups.js';

/** Admission without a cache: asks the database at each request. */
export function admitFromDatabase(lookups: Lookups, limiter: ProcessLimiter): Admit {
  return async (hash) => {
    const caller = await lookups.find(hash);
    return caller === undefined ? { kind: 'unknown_key' } : toAdmission(caller, await limiter.charge(caller));
  };
}
