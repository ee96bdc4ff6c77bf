import { ERROR_CODES, type ErrorCode } from '../../src/errors.js';
import { outcomeOf } from '../../src/usage/outcome.js';
import type { UsageCounter } from '../../src/usage/usage-counter.js';

/** Counts a request to `/me` that ended with a status; undefined for one whose client has left. */
export function count(usage: UsageCounter, keyId: number, status: number | undefined, at: number): void {
  const [code] = Object.entries(ERROR_CODES).find(([, each]) => each.status === status) ?? [];
  usage.count({ keyId, operation: 'getMe', outcome: outcomeOf(status, code as ErrorCode | undefined) }, at);
}
