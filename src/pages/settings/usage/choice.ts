import { operations } from '../../../api/index.js';
import { OUTCOMES } from '../../../usage/outcome.js';
import { USAGE_RANGES, type UsageOwner, type UsageRange } from '../../../usage/read-usage.js';
import { pageAddress } from '../../parts/web/addresses.js';
import { OTHER_PATHS } from '../failed-requests.js';

/** Shown unless the address names another range. */
const DEFAULT_RANGE = '30d';

/** What the page of usage is limited to. Undefined for all. */
export interface UsageChoice extends Omit<UsageOwner, 'developerId'> {
  readonly range: UsageRange;
}

/** Reads what `?range=`, `?operation=` and `?outcome=` name. Any other value means the default, or all. */
export function readUsageChoice(query: URLSearchParams): UsageChoice {
  const [range, operation, outcome] = ['range', 'operation', 'outcome'].map((name) => query.get(name) ?? '');
  return {
    range: isKeyOf(USAGE_RANGES, range) ? range : DEFAULT_RANGE,
    operation: operation === OTHER_PATHS ? '' : isKeyOf(operations, operation) ? operation : undefined,
    outcome: isKeyOf(OUTCOMES, outcome) ? outcome : undefined,
  };
}

function isKeyOf<T extends object>(values: T, name = ''): name is Extract<keyof T, string> {
  return Object.hasOwn(values, name);
}

/** @returns the address of the usage that is left by a choice */
export function usageAddress(path: string, { range, keyPrefix, operation, outcome }: UsageChoice): string {
  const query = Object.entries({
    range: range === DEFAULT_RANGE ? undefined : range,
    key: keyPrefix,
    operation: operation === '' ? OTHER_PATHS : operation,
    outcome,
  });
  return pageAddress(path, query);
}
