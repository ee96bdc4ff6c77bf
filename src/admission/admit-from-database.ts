import type { Admit } from './admission.js';
import type { ProcessLimiter } from './charge/process-limiter.js';
import type { LoadCaller } from './caller-loader.js';

/** Admission without a cache: asks the database at each request. */
export function admitFromDatabase(loadCaller: LoadCaller, limiter: ProcessLimiter): Admit {
  return async (hash) => {
    const caller = await loadCaller(hash);
    if (caller === undefined) return { kind: 'unknown_key' };
    return { kind: 'known', caller, ...(await limiter.charge(caller)) };
  };
}
