import { ERROR_CODES, type ErrorCode } from '../errors.js';

/** Requests by how they ended. */
export interface UsageCounts {
  /** Answered with success (2xx or 304). */
  readonly served: number;
  /** Refused for a reason of the client's: 4xx except 429. The client may also have left before the answer. */
  readonly rejected: number;
  /** Refused by a limit of the plan (429). */
  readonly refused: number;
  /** Failed by a fault of the service (5xx). */
  readonly failed: number;
}

/**
 * How a request ended: `success`, `client_closed` when the client left before the answer, or the code of the error.
 * `other` stands for any error of the client: see MOST_ERRORS.
 */
export type Outcome = ErrorCode | 'success' | 'client_closed' | 'other';

/** Every outcome, with its kind. */
export const OUTCOMES = Object.fromEntries([
  ['success', 'served'],
  ['client_closed', 'rejected'],
  ['other', 'rejected'],
  ...Object.entries(ERROR_CODES).map(([code, { status }]) => [code, kindOf(status)]),
]) as Readonly<Record<Outcome, keyof UsageCounts>>;

export const KINDS = ['served', 'rejected', 'refused', 'failed'] as const satisfies readonly (keyof UsageCounts)[];

/** The condition, in SQL, that a column `outcome` is of a kind. */
export const IS_OF_KIND = Object.fromEntries(
  KINDS.map((kind) => {
    const outcomes = Object.entries(OUTCOMES).flatMap(([outcome, of]) => (of === kind ? [`'${outcome}'`] : []));
    return [kind, `outcome in (${outcomes.join(', ')})`];
  }),
) as Readonly<Record<keyof UsageCounts, string>>;

/** @returns the sum of each kind of outcome, in SQL, as columns by the names of {@link UsageCounts} */
export function sumByKind(requests: string): string {
  return KINDS.map(
    (kind) => `coalesce(sum(${requests}) filter (where ${IS_OF_KIND[kind]}), 0)::bigint as ${kind}`,
  ).join(', ');
}

function kindOf(status: number): keyof UsageCounts {
  if (status === 429) return 'refused';
  return status >= 500 ? 'failed' : 'rejected';
}

/**
 * @param status - of the answer; undefined if the client left before it
 * @param code - of the error; undefined for a success, and where sending the answer failed
 */
export function outcomeOf(status: number | undefined, code: ErrorCode | undefined): Outcome {
  if (status === undefined) return 'client_closed';
  return status < 400 ? 'success' : (code ?? 'internal_error');
}
