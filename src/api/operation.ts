import type { Knex } from 'knex';
import type { Micros } from '../platform/time/micros.js';
import type { Answer, OperationId, PathParameters, QueryParameters } from '../contract.js';
import type { Caller } from '../admission/callers.js';
import type { Read } from '../platform/postgres/replica.js';

export interface Dependencies {
  /** The primary. */
  readonly db: Knex;
  /** Reads that may come from a replica, and so may be a little behind. */
  readonly read: Read;
  /** The clock of this process. */
  readonly now: () => Micros;
}

/** A request to one operation: authenticated, and validated by the contract. */
export interface OperationRequest<Id extends OperationId> {
  readonly path: PathParameters<Id>;
  /** The decoded query parameters, as text: a number would round some values. */
  readonly search: URLSearchParams;
  readonly caller: Caller;
  /** Sets a header field of the answer, 200 or 304. */
  readonly setField: (name: string, value: string) => void;
}

/**
 * Answers one operation: takes a request, and returns the body of the 200 answer.
 *
 * @throws Problem for every other answer of the contract
 */
export type Handler<Id extends OperationId> = (
  dependencies: Dependencies,
  request: OperationRequest<Id>,
) => Answer<Id> | Promise<Answer<Id>>;

/** Parses all values of a query parameter; empty for one of the path. @throws Problem that explains the fault */
export type CheckParameter = (values: readonly string[]) => unknown;

/** How HTTP treats an operation's requests and answers. */
export interface Policy<Id extends OperationId> {
  /**
   * `revalidate`: the client may store the answer, and revalidates it before each use. `never`: no cache stores the
   * answer, not even the client's.
   */
  readonly cache: 'revalidate' | 'never';
  /** Whether to compress the answer, which can be long, for clients that accept it. */
  readonly compress?: boolean;
  /** Returns the query of the next page, for `Link` (RFC 8288); undefined if there is none. */
  nextPage?(answer: Answer<Id>): string | undefined;
  /** Parameters whose invalid values are explained by a function rather than by their schema. */
  readonly parameterErrors?: Readonly<
    Partial<Record<NamesOf<QueryParameters<Id>> | NamesOf<PathParameters<Id>>, CheckParameter>>
  >;
}

/** The names of the parameters of an operation. */
type NamesOf<Parameters> = string extends keyof Parameters ? never : keyof Parameters;

/** An operation of the contract: its handler, and how HTTP treats it. */
export interface Operation<Id extends OperationId> {
  readonly id: Id;
  readonly policy: Policy<Id>;
  readonly handle: Handler<Id>;
}

/** Defines an operation of the contract. */
export function operation<Id extends OperationId>(id: Id, policy: Policy<Id>, handle: Handler<Id>): Operation<Id> {
  return { id, policy, handle };
}
