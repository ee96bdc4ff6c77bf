import type { Knex } from 'knex';
import type { Micros } from '../catalog/timestamps.js';
import type { Answer, OperationId, PathParameters, QueryParameters } from '../contract.js';
import type { Caller } from '../keys/callers.js';
import type { Read } from '../platform/replica.js';

/** What operations work with. */
export interface Dependencies {
  /** The primary. */
  readonly db: Knex;
  /** Reads that may come from a replica, and so may be a little behind. */
  readonly read: Read;
  /** The clock of this process. */
  readonly now: () => Micros;
}

/** A request to one operation: authenticated, and valid by the contract. */
export interface OperationRequest<Id extends OperationId> {
  readonly path: PathParameters<Id>;
  readonly query: QueryParameters<Id>;
  /** The query as text, decoded: for what a number would round. */
  readonly search: URLSearchParams;
  readonly caller: Caller;
}

/**
 * Answers one operation: a request in, the body of the 200 answer out.
 *
 * @throws Problem for every other answer of the contract
 */
export type Handler<Id extends OperationId> = (
  dependencies: Dependencies,
  request: OperationRequest<Id>,
) => Promise<Answer<Id>>;
