import { OUTCOMES } from '../../../usage/outcome.js';
import { USAGE_RANGES, type UsageOwner, type UsageRange } from '../../../usage/read-usage.js';
import { pageAddress } from '../../parts/web/addresses.js';
import { optionOf } from '../../parts/forms/list-page.js';
import { operationInAddress, readOperation } from '../operation-choice.js';

/** Shown unless the address names another range. */
const DEFAULT_RANGE = '30d';

/** What the page of usage is limited to. Undefined for all. */
export interface UsageChoice extends Omit<UsageOwner, 'developerId'> {
  readonly range: UsageRange;
}

/** Reads what `?range=`, `?operation=` and `?outcome=` name. Any other value means the default, or all. */
export function readUsageChoice(query: URLSearchParams): UsageChoice {
  return {
    range: optionOf(query, 'range', USAGE_RANGES) ?? DEFAULT_RANGE,
    operation: readOperation(query),
    outcome: optionOf(query, 'outcome', OUTCOMES),
  };
}

/** @returns the address of the usage that is left by a choice */
export function usageAddress(path: string, { range, keyPrefix, operation, outcome }: UsageChoice): string {
  const query = Object.entries({
    range: range === DEFAULT_RANGE ? undefined : range,
    key: keyPrefix,
    operation: operationInAddress(operation),
    outcome,
  });
  return pageAddress(path, query);
}
