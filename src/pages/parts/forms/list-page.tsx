import type { VNode } from 'preact';
import { findKeyPrefix, looksLikeKey } from '../../../keys/api-key.js';
import type { Slice } from '../../../platform/postgres/rows.js';
import { printable } from '../../../platform/text/plain-text.js';
import type { PageContext } from '../context.js';
import { pageAddress, queryOf, seeOther } from '../web/addresses.js';
import { Button } from '../content/components.js';
import { PageError } from '../frame/error-page.js';

/** Rows on one page of a list. */
const PAGE_SIZE = 50;

/** One page of a list. */
export interface ListPage<T> {
  readonly rows: readonly T[];
  /** From 1. */
  readonly number: number;
  readonly hasNext: boolean;
}

/**
 * Reads the page of a list that `?page=` names. Any other value means the first page.
 *
 * @throws PageError 404 for a page after the last one
 * @example
 *   const sessions = await readListPage(ctx, (slice) => listSessions(db, developerId, slice));
 */
export async function readListPage<T>(
  ctx: PageContext,
  read: (slice: Slice) => Promise<readonly T[]>,
): Promise<ListPage<T>> {
  const text = ctx.state.target.search.get('page') ?? '';
  const number = /^[1-9]\d{0,5}$/.test(text) ? Number(text) : 1;
  // One more row than a page shows reveals whether there is a next page.
  const rows = await read({ limit: PAGE_SIZE + 1, offset: (number - 1) * PAGE_SIZE });
  if (rows.length === 0 && number > 1) {
    const first = pageAddress(
      ctx.path,
      [...queryOf(ctx)].filter(([name]) => name !== 'page'),
    );
    const detail = [`The list is shorter than ${number} pages. `, <a href={first}>Go to its first page</a>, '.'];
    throw new PageError(404, 'No such page of the list', detail);
  }
  return { rows: rows.slice(0, PAGE_SIZE), number, hasNext: rows.length > PAGE_SIZE };
}

/**
 * Reads the search text of a list, `?q=`. A search for a whole key redirects to one for its prefix, so that the secret
 * leaves the address, which is kept in histories.
 *
 * @returns an empty text for the whole list; undefined once the request is redirected
 */
export function readListSearch(ctx: PageContext, path: string, maxLength: number): string | undefined {
  const wanted = queryOf(ctx).get('q') ?? '';
  if (!looksLikeKey(wanted)) return printable(wanted.trim().slice(0, maxLength));
  seeOther(ctx, searchAddress(path, findKeyPrefix(wanted)));
  return undefined;
}

function searchAddress(path: string, search = ''): string {
  return pageAddress(path, search === '' ? [] : [['q', search]]);
}

interface ListSearchProps {
  /** The address of the list. */
  readonly path: string;
  readonly search: string;
  /** The label of the search field. */
  readonly label: string;
  readonly maxLength: number;
}

/** The form that searches a list. */
export function ListSearch({ path, search, label, maxLength }: ListSearchProps): VNode {
  return (
    <form class="filter" method="get" action={path} role="search">
      <label for="filter">{label}</label>
      <input class="input" id="filter" name="q" type="search" value={search} maxLength={maxLength} autocomplete="off" />
      <Button label="Filter" />
      {search !== '' && <a href={path}>Show all</a>}
    </form>
  );
}

interface PagerProps {
  /** The address of the first page, without the search text; it may have another query. */
  readonly path: string;
  readonly search?: string;
  readonly page: ListPage<unknown>;
}

/** Links to the previous and the next page of a list. */
export function Pager({ path, search, page: { number, hasNext } }: PagerProps): VNode | null {
  if (number === 1 && !hasNext) return null;
  const first = search === undefined ? path : searchAddress(path, search);
  const address = (of: number): string => `${first}${first.includes('?') ? '&' : '?'}page=${of}`;
  return (
    <nav class="cluster" aria-label="Pages">
      {number > 1 && (
        <a href={number === 2 ? first : address(number - 1)} rel="prev">
          Previous page
        </a>
      )}
      {hasNext && (
        <a href={address(number + 1)} rel="next">
          Next page
        </a>
      )}
    </nav>
  );
}
