import type { OperationId } from '../contract.js';
import { getChanges } from './getChanges.js';
import { getMe } from './getMe.js';
import { getStats } from './getStats.js';
import { getTitle } from './getTitle.js';
import type { Operation } from './operation.js';

/** Every operation. An operation of the contract that is missing here does not compile. */
export const operations: { readonly [Id in OperationId]: Operation<Id> } = {
  getChanges,
  getMe,
  getStats,
  getTitle,
};
