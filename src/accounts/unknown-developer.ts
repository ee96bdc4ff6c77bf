import { OperatorError } from '../errors.js';

/** The error of a command that names a developer who is not there. */
export function unknownDeveloper(id: number): OperatorError {
  return new OperatorError(`There is no developer ${id}. "catalog developers list" shows them all.`);
}
