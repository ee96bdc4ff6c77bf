import type { VNode } from 'preact';

/** The most characters of a query that count. */
export const MAX_QUERY = 100;

/** Where the search is answered. */
export const SEARCH_PATH = '/docs/search';

/** The search within a page. */
export function SearchBox(form: SearchFormProps): VNode {
  return (
    <search class="search">
      <SearchForm {...form} />
    </search>
  );
}

/** The search in the header of every page, which a page with a {@link SearchBox} hides. On a phone it is only a button. */
export function HeaderSearch(): VNode {
  return (
    <search class="site-search">
      <SearchForm />
    </search>
  );
}

interface SearchFormProps {
  /** What the page shows the results of. */
  readonly query?: string;
  readonly hasFocus?: boolean;
}

/** A form that the server answers with a page. */
function SearchForm({ query, hasFocus = false }: SearchFormProps): VNode {
  return (
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
        <Magnifier />
      </button>
    </form>
  );
}

function Magnifier(): VNode {
  return (
    <svg class="magnifier" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      <circle cx="6.5" cy="6.5" r="4.75" />
      <path d="m10 10 4.5 4.5" />
    </svg>
  );
}
