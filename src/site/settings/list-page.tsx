import type { VNode } from 'preact';
import type { Slice } from '../../platform/postgres/rows.js';
import type { PageContext } from '../context.js';

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
 * @example
 *   const sessions = await readListPage(ctx, (slice) => listSessions(db, developerId, slice));
 */
export async function readListPage<T>(
  { state }: Pick<PageContext, 'state'>,
  read: (slice: Slice) => Promise<readonly T[]>,
): Promise<ListPage<T>> {
  const text = state.target.search.get('page') ?? '';
  const number = /^[1-9]\d{0,5}$/.test(text) ? Number(text) : 1;
  // One more row than a page shows reveals whether there is a next page.
  const rows = await read({ limit: PAGE_SIZE + 1, offset: (number - 1) * PAGE_SIZE });
  return { rows: rows.slice(0, PAGE_SIZE), number, hasNext: rows.length > PAGE_SIZE };
}

interface PagerProps {
  /** The address of the first page; it may have a query. */
  readonly path: string;
  readonly page: ListPage<unknown>;
}

/** Links to the previous and the next page of a list. */
export function Pager({ path, page: { number, hasNext } }: PagerProps): VNode | null {
  if (number === 1 && !hasNext) return null;
  const address = (of: number): string => `${path}${path.includes('?') ? '&' : '?'}page=${of}`;
  return (
    <nav class="cluster" aria-label="Pages">
      {number > 1 && (
        <a href={number === 2 ? path : address(number - 1)} rel="prev">
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
