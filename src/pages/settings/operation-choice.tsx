import type { VNode } from 'preact';
import { operations } from '../../api/index.js';
import { optionOf } from '../parts/forms/list-page.js';
import { Choice, type Option } from './key-filter.js';

/** What stands in an address for the paths without an operation, whose id is empty. */
const OTHER_PATHS = 'other';

/** @returns what an address has for an operation; undefined for all */
export function operationInAddress(operation: string | undefined): string | undefined {
  return operation === '' ? OTHER_PATHS : operation;
}

/** Reads the operation that `?operation=` names. @returns its id, empty for other paths; undefined for any other text */
export function readOperation(query: URLSearchParams): string | undefined {
  const name = optionOf(query, 'operation', { ...operations, [OTHER_PATHS]: undefined });
  return name === OTHER_PATHS ? '' : name;
}

interface OperationChoiceProps {
  /** The ids that may be chosen. */
  readonly ids: readonly string[];
  /** Undefined for all. */
  readonly value: string | undefined;
}

/** A list that limits a page to one operation. */
export function OperationChoice({ ids, value }: OperationChoiceProps): VNode {
  const options = ids.map((id): Option => [operationInAddress(id) ?? id, id === '' ? 'Other paths' : id]);
  return (
    <Choice
      name="operation"
      label="Operation"
      options={[['', 'All operations'], ...options]}
      value={operationInAddress(value)}
    />
  );
}
