import type { Knex } from 'knex';
import type { ComponentChildren, VNode } from 'preact';
import { operations } from '../../api/index.js';
import type { ErrorCode } from '../../errors.js';
import { isKeyPrefix } from '../../keys/api-key.js';
import { findKeyOf, listKeysOf } from '../../keys/keys.js';
import { printable } from '../../platform/text/plain-text.js';
import type { Outcome } from '../../usage/outcome.js';
import type { UsageRange } from '../../usage/read-usage.js';
import { isolated, Button } from '../parts/content/components.js';
import { optionOf } from '../parts/forms/list-page.js';
import { readTogether } from '../parts/read-together.js';
import { pageAddress, queryOf } from '../parts/web/addresses.js';
import type { SettingsContext } from './settings-page.js';

/** What a page is limited to. Undefined for all. */
export interface Filters {
  readonly range?: UsageRange;
  readonly keyPrefix?: string | undefined;
  readonly code?: ErrorCode | undefined;
  /** Empty for the paths without an operation. */
  readonly operation?: string | undefined;
  readonly outcome?: Outcome | undefined;
  /** The beginning of an hour, in RFC 3339 and UTC. */
  readonly hour?: string | undefined;
}

/** Meant by an address that names no other. */
export const DEFAULT_RANGE = '30d';

/** @returns the address of a page that is limited by some filters */
export function addressOf(path: string, { range, keyPrefix, code, operation, outcome, hour }: Filters = {}): string {
  const query = {
    range: range === DEFAULT_RANGE ? undefined : range,
    key: keyPrefix,
    code,
    operation: operationInAddress(operation),
    outcome,
    hour: hour?.slice(0, 16),
  };
  return pageAddress(path, Object.entries(query));
}

/** @returns the address of request errors, of all without filters */
export function failuresAddress({ keyPrefix, code, operation, hour }: Filters = {}): string {
  return addressOf('/settings/usage/failed', { keyPrefix, code, operation, hour });
}

/** A developer may have thousands of inactive keys; the chosen one is always listed. */
const MOST_LISTED = 50;

/** The most characters of a label that fit on a narrow screen. */
const SHOWN_LABEL = 40;

/**
 * Reads which of the developer's keys `?key=` names: none for all keys, as for the prefix of any other key. Active keys
 * come first in the list.
 */
export async function readKeyChoice(db: Knex, ctx: SettingsContext) {
  const { developerId } = ctx.state.session;
  const prefix = queryOf(ctx).get('key') ?? '';
  const { chosen, listed } = await readTogether({
    chosen: async () => (isKeyPrefix(prefix) ? findKeyOf(db, developerId, prefix) : undefined),
    listed: () => listKeysOf(db, developerId, { limit: MOST_LISTED }),
  });
  const isListed = chosen === undefined || listed.some((key) => key.prefix === chosen.prefix);
  return { chosen, listed: isListed ? listed : [chosen, ...listed] };
}

interface FilterFormProps {
  /** The address of the page. */
  readonly path: string;
  /** What else stands in the query of the address. */
  readonly query?: Readonly<Record<string, string>>;
  readonly keys: Awaited<ReturnType<typeof readKeyChoice>>;
  /** Whether another filter than the key limits the page now. */
  readonly isFiltered: boolean;
  /** What else the page can be limited to. */
  readonly children?: ComponentChildren;
}

/** A form that limits a page to one key, and by other filters. */
export function FilterForm(props: FilterFormProps): VNode {
  const { path, query = {}, keys, isFiltered, children } = props;
  const { chosen, listed } = keys;
  return (
    <form class="filter" method="get" action={path}>
      {Object.entries(query).map(([name, value]) => (
        <input key={name} type="hidden" name={name} value={value} />
      ))}
      <Choice
        name="key"
        label="Key"
        all="All keys"
        options={listed.map(({ prefix, label }) => [
          prefix,
          label === null ? prefix : `${isolated(printable(label, SHOWN_LABEL))} (${prefix})`,
        ])}
        value={chosen?.prefix}
      />
      {children}
      <Button label="Show" />
      {(chosen !== undefined || isFiltered) && <a href={pageAddress(path, Object.entries(query))}>Show all</a>}
    </form>
  );
}

interface ChoiceProps {
  /** In the address. */
  readonly name: string;
  readonly label: string;
  /** The name of the option that limits nothing. */
  readonly all: string;
  /** The others: each as an address has it, with its name where that is another. */
  readonly options: readonly (string | readonly [value: string, name: string])[];
  /** Undefined for all. */
  readonly value: string | undefined;
}

/** A list that limits a page to one of its values. */
export function Choice({ name, label, all, options, value = '' }: ChoiceProps): VNode {
  return (
    <label>
      <span class="visually-hidden">{label}</span>
      <select class="input" name={name} autocomplete="off">
        {[['', all] as const, ...options].map((option) => {
          const [each, text] = typeof option === 'string' ? [option, option] : option;
          return (
            <option key={each} value={each} selected={each === value}>
              {text}
            </option>
          );
        })}
      </select>
    </label>
  );
}

/** What stands in an address for the paths without an operation, whose id is empty. */
const OTHER_PATHS = 'other';

function operationInAddress(operation: string | undefined): string | undefined {
  return operation === '' ? OTHER_PATHS : operation;
}

/** Reads the operation that `?operation=` names. @returns its id, empty for other paths; undefined for any other text */
export function readOperation(query: URLSearchParams): string | undefined {
  const name = optionOf(query, 'operation', { ...operations, [OTHER_PATHS]: undefined });
  return name === OTHER_PATHS ? '' : name;
}

interface OperationChoiceProps {
  /** The ids that may be chosen; by default those of all operations, and other paths. */
  readonly ids?: readonly string[];
  /** Undefined for all. */
  readonly value: string | undefined;
}

/** A list that limits a page to one operation. */
export function OperationChoice({ ids = [...Object.keys(operations), ''], value }: OperationChoiceProps): VNode {
  return (
    <Choice
      name="operation"
      label="Operation"
      all="All operations"
      options={ids.map((id) => (id === '' ? [OTHER_PATHS, 'Other paths'] : id))}
      value={operationInAddress(value)}
    />
  );
}
