import type { Knex } from 'knex';
import type { ComponentChildren, VNode } from 'preact';
import { isKeyPrefix } from '../../keys/api-key.js';
import { findKeyOf, listKeysOf } from '../../keys/keys.js';
import { printable } from '../../platform/text/plain-text.js';
import { isolated, Button } from '../parts/content/components.js';
import { readTogether } from '../parts/read-together.js';
import type { SettingsContext } from './settings-page.js';

/** A developer may have thousands of inactive keys; the chosen one is always listed. */
const MOST_LISTED = 50;

/** The most characters of a label that fit on a narrow screen. */
const SHOWN_LABEL = 40;

/**
 * Reads which of the developer's keys `?key=` names: none for all keys, as for the prefix of any other key. Active keys
 * come first in the list.
 */
export async function readKeyChoice(db: Knex, { state }: SettingsContext) {
  const { developerId } = state.session;
  const prefix = state.target.search.get('key') ?? '';
  const { chosen, listed } = await readTogether({
    chosen: async () => (isKeyPrefix(prefix) ? findKeyOf(db, developerId, prefix) : undefined),
    listed: () => listKeysOf(db, developerId, { limit: MOST_LISTED }),
  });
  const isListed = chosen === undefined || listed.some((key) => key.prefix === chosen.prefix);
  return { chosen, listed: isListed ? listed : [chosen, ...listed] };
}

interface KeyFilterProps {
  /** The address of the page. */
  readonly path: string;
  /** What else stands in the query of the address. */
  readonly query?: Readonly<Record<string, string>>;
  readonly keys: Awaited<ReturnType<typeof readKeyChoice>>;
  /** What else the page can be limited to. */
  readonly children?: ComponentChildren;
}

/** A form that limits a page to one key. */
export function KeyFilter({ path, query = {}, keys: { chosen, listed }, children }: KeyFilterProps): VNode {
  return (
    <form class="filter" method="get" action={path}>
      {Object.entries(query).map(([name, value]) => (
        <input key={name} type="hidden" name={name} value={value} />
      ))}
      <Choice
        name="key"
        label="Key"
        options={[
          ['', 'All keys'],
          ...listed.map(({ prefix, label }): Option => {
            return [prefix, label === null ? prefix : `${isolated(printable(label, SHOWN_LABEL))} (${prefix})`];
          }),
        ]}
        value={chosen?.prefix}
      />
      {children}
      <Button label="Show" />
    </form>
  );
}

/** A value in an address, and its name. */
export type Option = readonly [string, string];

interface ChoiceProps {
  readonly name: string;
  readonly label: string;
  /** The first means all. */
  readonly options: readonly Option[];
  /** Undefined for all. */
  readonly value: string | undefined;
}

/** A list that limits a page to one of its values. */
export function Choice({ name, label, options, value = '' }: ChoiceProps): VNode {
  return (
    <label>
      <span class="visually-hidden">{label}</span>
      <select class="input" name={name} autocomplete="off">
        {options.map(([each, text]) => (
          <option key={each} value={each} selected={each === value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}
