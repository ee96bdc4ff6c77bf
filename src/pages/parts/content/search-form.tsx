import type { VNode } from 'preact';

/** The number of characters of a query that count. */
export const MAX_QUERY = 100;

/** Where the search is answered. */
export const SEARCH_PATH = '/docs/search';

interface SearchBoxProps {
  /** Whether it is the one in the header, which a page with another one hides. On a phone it is only a button. */
  readonly isInHeader?: boolean;
  /** The query whose results the page shows. */
  readonly query?: string;
  readonly hasFocus?: boolean;
}

/** The search, which the server answers with a page. */
export function SearchBox({ isInHeader = false, query, hasFocus = false }: SearchBoxProps): VNode {
  return (
    <search class={isInHeader ? 'site-search' : 'search'}>
      <form class="search-form" action={SEARCH_PATH}>
        <input
          class="input"
          type="search"
          name="q"
          value={query}
          maxLength={MAX_QUERY}
          aria-label="Search the documentation"
          aria-keyshortcuts="/"
          placeholder="Search"
          autocapitalize="none"
          autocomplete="off"
          spellcheck={false}
          enterkeyhint="search"
          autofocus={hasFocus}
        />
        <kbd class="scripted" aria-hidden="true">
          /
        </kbd>
        <button class="search-button" type="submit" aria-label="Search">
          <svg class="magnifier" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
            <circle cx="6.5" cy="6.5" r="4.75" />
            <path d="m10 10 4.5 4.5" />
          </svg>
        </button>
      </form>
    </search>
  );
}
