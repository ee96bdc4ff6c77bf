import type { VNode } from 'preact';
import { findKeyPrefix, isKeyPrefix, looksLikeKey } from '../../../keys/api-key.js';
import type { Part } from '../../../platform/postgres/rows.js';
import { printable } from '../../../platform/text/plain-text.js';
import { existsInCalendar } from '../../../platform/time/calendar.js';
import type { PageContext } from '../context.js';
import { pageAddress, queryOf, seeOther } from '../web/addresses.js';
import { Button } from '../content/components.js';
import { PageError } from '../frame/error-page.js';

/** Rows on one page of a list. */
const PAGE_SIZE = 50;

/** One page of a list. */
export interface ListPage<Row> {
  readonly rows: readonly Row[];
  /** The address of the first page; undefined on this one. */
  readonly first: string | undefined;
  /** The address of the next page; undefined on the last one. */
  readonly next: string | undefined;
}

/** Reads a field of a row from `?after=`. @returns undefined for a text that the database would refuse */
const FIELDS = {
  number: (text: string) => (/^\d+$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined),
  time: (text: string) => {
    const seconds = /^([12]\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d{1,6})?Z$/.exec(text)?.[1];
    return seconds !== undefined && existsInCalendar(seconds) ? text : undefined;
  },
  prefix: (text: string) => (isKeyPrefix(text) ? text : undefined),
} as const;

/** The fields by which a list is in order. */
type Order = Readonly<Record<string, keyof typeof FIELDS>>;

/** The values of a row in these fields. */
type PlaceIn<By extends Order> = {
  readonly [Name in keyof By]: Exclude<ReturnType<(typeof FIELDS)[By[Name]]>, undefined>;
};

/** The order of lists by time, the newest first. */
export const BY_TIME = { at: 'time', id: 'number' } as const;

/** The order of lists of keys. */
export const BY_PREFIX = { prefix: 'prefix' } as const;

/**
 * Reads the page of a list that follows the row of `?after=`. Any other value means the first page. The addresses of
 * other pages have the rest of the query.
 *
 * @throws PageError 404 for a page after the last one
 * @example
 *   const events = await readListPage(ctx, BY_TIME, (part) => listEvents(db, { developerId, ...part }));
 */
export async function readListPage<const By extends Order, Row extends PlaceIn<By>>(
  ctx: PageContext,
  order: By,
  read: (part: Part<PlaceIn<By>>) => Promise<readonly Row[]>,
): Promise<ListPage<Row>> {
  const query = [...queryOf(ctx)].filter(([name]) => name !== AFTER);
  const after = placeOf(order, queryOf(ctx).get(AFTER)) as PlaceIn<By> | undefined;
  // One more row than a page shows reveals whether there is a next page.
  const rows = await read({ limit: PAGE_SIZE + 1, after });
  const first = after && pageAddress(ctx.path, query);
  if (rows.length === 0 && first !== undefined) {
    const detail = ['The list ends before this page. ', <a href={first}>Go to its first page</a>, '.'];
    throw new PageError(404, 'No such page of the list', detail);
  }
  const last = rows.length > PAGE_SIZE ? rows[PAGE_SIZE - 1] : undefined;
  const place =
    last &&
    Object.keys(order)
      .map((name) => last[name])
      .join();
  const next = place && pageAddress(ctx.path, [...query, [AFTER, place]]);
  return { rows: rows.slice(0, PAGE_SIZE), first, next };
}

/** The parameter of a page that is not the first one. */
const AFTER = 'after';

/** @returns the fields that a text has; undefined if it does not have those of an order */
function placeOf(order: Order, text: string | null): object | undefined {
  const values = text?.split(',') ?? [];
  const fields = Object.entries(order).map(([name, type], index) => [name, FIELDS[type](values[index] ?? '')] as const);
  return fields.some(([, value]) => value === undefined) ? undefined : Object.fromEntries(fields);
}

interface SearchParameters {
  /** The parameter of the text. */
  readonly name?: string;
  /** The parameter of the prefix of a key. */
  readonly key?: string;
}

/**
 * Reads the search text of a list. A search for a whole key redirects to one for its prefix, so that the secret leaves
 * the address, which is kept in histories.
 *
 * @returns an empty text for the whole list; undefined once the request is redirected
 */
export function readListSearch(
  ctx: PageContext,
  maxLength: number,
  { name = 'q', key = name }: SearchParameters = {},
): string | undefined {
  const query = queryOf(ctx);
  const wanted = query.get(name) ?? '';
  if (!looksLikeKey(wanted)) return printable(wanted.trim().slice(0, maxLength));
  query.delete(name);
  const prefix = findKeyPrefix(wanted);
  if (prefix !== undefined) query.set(key, prefix);
  query.delete(AFTER);
  seeOther(ctx, pageAddress(ctx.path, query));
  return undefined;
}

/** @returns the option that a parameter of an address names; undefined for any other text */
export function optionOf<Option extends string>(
  query: URLSearchParams,
  name: string,
  options: Readonly<Record<Option, unknown>>,
): Option | undefined {
  const value = query.get(name) ?? '';
  return Object.hasOwn(options, value) ? (value as Option) : undefined;
}

interface ListSearchProps {
  /** The address of the list. */
  readonly path: string;
  /** The rest of its query. */
  readonly query?: Readonly<Record<string, string>>;
  readonly search: string;
  /** The label of the search field. */
  readonly label: string;
  readonly maxLength: number;
}

/** The form that searches a list. */
export function ListSearch({ path, query = {}, search, label, maxLength }: ListSearchProps): VNode {
  const rest = Object.entries(query);
  return (
    <form class="filter" method="get" action={path} role="search">
      {rest.map(([name, value]) => (
        <input key={name} type="hidden" name={name} value={value} />
      ))}
      <label for="filter">{label}</label>
      <input class="input" id="filter" name="q" type="search" value={search} maxLength={maxLength} autocomplete="off" />
      <Button label="Filter" />
      {search !== '' && <a href={pageAddress(path, rest)}>Show all</a>}
    </form>
  );
}

interface SwitchProps {
  /** The subject of the options. */
  readonly label: string;
  /** The name of each, by its value in an address. */
  readonly options: Readonly<Record<string, string>>;
  readonly chosen: string;
  /** @returns the address of the page with an option */
  readonly addressOf: (option: string) => string;
}

/** Links to the same list with another option. */
export function Switch({ label, options, chosen, addressOf }: SwitchProps): VNode {
  return (
    <nav class="ranges" aria-label={label}>
      <ul>
        {Object.entries(options).map(([option, name]) => (
          <li key={option}>
            <a href={addressOf(option)} aria-current={option === chosen ? 'true' : undefined}>
              {name}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

/** Links to the first and the next page of a list. */
export function Pager({ page: { first, next } }: { readonly page: ListPage<unknown> }): VNode | null {
  if (first === undefined && next === undefined) return null;
  return (
    <nav class="cluster" aria-label="Pages">
      {first !== undefined && <a href={first}>First page</a>}
      {next !== undefined && (
        <a href={next} rel="next">
          Next page
        </a>
      )}
    </nav>
  );
}
