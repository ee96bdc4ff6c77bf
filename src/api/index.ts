import type { OperationId } from '../contract.js';
import { getChanges } from './getChanges.js';
import { getMe } from './getMe.js';
import { getStats } from './getStats.js';
import { getTitle } from './getTitle.js';
import type { Handler } from './handler.js';

/** The handler of every operation. An operation of the contract that is missing here does not compile. */
export const handlers: { readonly [Id in OperationId]: Handler<Id> } = {
  getChanges,
  getMe,
  getStats,
  getTitle,
};
