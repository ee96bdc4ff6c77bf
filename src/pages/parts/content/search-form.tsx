import type { VNode } from 'preact';

/** The number of characters of a query that count. */
export const MAX_QUERY = 100;

/** Where the search is answered. */
export const SEARCH_PATH = '/docs/search';

/** The search in the header of every page, which the server answers with a page. */
export function SearchBox({ query }: { readonly query: string | undefined }): VNode {
  return (
    <search class={query === undefined ? 'site-search' : 'site-search search-open'}>
      <form class="search-form" action={SEARCH_PATH}>
        <input
          class="input"
          type="search"
          name="q"
          value={query}
          maxLength={MAX_QUERY}
          aria-label="Search the documentation"
          aria-keyshortcuts="Control+K Meta+K"
          placeholder="Search"
          autocapitalize="none"
          autocomplete="off"
          spellcheck={false}
          enterkeyhint="search"
          autofocus={query === ''}
        />
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
