import { ERROR_CODES, type ErrorCode } from '../errors.js';

/** Requests by how they ended. */
export interface UsageCounts {
  /** 2xx or 304. */
  readonly successful: number;
  /** 4xx except 429. The client may also have left before the answer. */
  readonly clientErrors: number;
  /** Refused by a limit of the plan (429). */
  readonly rateLimited: number;
  /** 5xx. */
  readonly serverErrors: number;
}

/** The name of each kind in the database. */
export const COLUMNS = {
  successful: 'served',
  clientErrors: 'rejected',
  rateLimited: 'refused',
  serverErrors: 'failed',
} as const satisfies Record<keyof UsageCounts, string>;

/** All kinds, in the order in which they are shown. */
export const KINDS = Object.keys(COLUMNS) as readonly (keyof UsageCounts)[];

/** The name of each kind for people, within a sentence. */
export const KIND_NAMES = {
  successful: 'successful',
  clientErrors: 'client errors',
  rateLimited: 'rate limited',
  serverErrors: 'server errors',
} as const satisfies Record<keyof UsageCounts, string>;

/** @returns the number of all requests */
export function total(counts: UsageCounts): number {
  return KINDS.reduce((added, kind) => added + counts[kind], 0);
}

/** Makes a list of columns of a query, one for each kind. @param column - by the kind and its name in the database */
export function eachKind(column: (name: string, kind: keyof UsageCounts) => string): string {
  return KINDS.map((kind) => column(COLUMNS[kind], kind)).join(', ');
}

/** The columns, by their names in the database. */
export const COUNTED = eachKind((name) => name);

/** The columns as members of {@link UsageCounts}. */
export const AS_COUNTS = eachKind((name, kind) => `${name} as "${kind}"`);

/** The number of all requests, in SQL. */
export const ALL_KINDS = Object.values(COLUMNS).join(' + ');

/**
 * How a request ended: `success`, `client_closed` when the client left before the answer, or the code of the error.
 * `other` stands for any error of the client: see MOST_ERRORS.
 */
export type Outcome = ErrorCode | 'success' | 'client_closed' | 'other';

/** Every outcome, with its kind. */
export const OUTCOMES = Object.fromEntries([
  ['success', 'successful'],
  ['client_closed', 'clientErrors'],
  ['other', 'clientErrors'],
  ...Object.entries(ERROR_CODES).map(([code, { status }]) => [code, kindOf(status)]),
]) as Readonly<Record<Outcome, keyof UsageCounts>>;

/** The condition, in SQL, that a column `outcome` is of a kind. */
export const IS_OF_KIND = Object.fromEntries(
  KINDS.map((kind) => {
    const outcomes = Object.entries(OUTCOMES).flatMap(([outcome, of]) => (of === kind ? [`'${outcome}'`] : []));
    return [kind, `outcome in (${outcomes.join(', ')})`];
  }),
) as Readonly<Record<keyof UsageCounts, string>>;

/** @returns the sum of each kind of outcome, in SQL, as columns by their names in the database */
export function sumByKind(requests: string): string {
  return eachKind(
    (name, kind) => `coalesce(sum(${requests}) filter (where ${IS_OF_KIND[kind]}), 0)::bigint as ${name}`,
  );
}

function kindOf(status: number): keyof UsageCounts {
  if (status === 429) return 'rateLimited';
  return status >= 500 ? 'serverErrors' : 'clientErrors';
}

/**
 * @param status - of the answer; undefined if the client left before it
 * @param code - of the error; undefined for a success, and where sending the answer failed
 */
export function outcomeOf(status: number | undefined, code: ErrorCode | undefined): Outcome {
  if (status === undefined) return 'client_closed';
  return status < 400 ? 'success' : (code ?? 'internal_error');
}
