import type { VNode } from 'preact';
import { MAX_QUERY } from './search.js';

/** Where the search is answered. */
export const SEARCH_PATH = '/docs/search';

const LABEL = 'Search the documentation';

/** The search within a page: without scripts a form, with them a button that opens the dialog. */
export function SearchBox(): VNode {
  return (
    <search class="search">
      <div class="scriptless">
        <SearchForm />
      </div>
      <OpenSearch />
    </search>
  );
}

/** The search in the header of every page: without scripts a link to its page. A page with a {@link SearchBox} hides it. */
export function HeaderSearch(): VNode {
  return (
    <search class="site-search">
      <div class="scriptless">
        <a class="search-open" href={SEARCH_PATH} aria-label="Search">
          <Magnifier />
          <span>Search</span>
        </a>
      </div>
      <OpenSearch />
    </search>
  );
}

function OpenSearch(): VNode {
  return (
    <button
      type="button"
      class="search-open scripted"
      data-search-open
      aria-label="Search"
      aria-haspopup="dialog"
      aria-keyshortcuts="/ Control+K Meta+K"
    >
      <Magnifier />
      <span>Search</span>
      <kbd aria-hidden="true">/</kbd>
    </button>
  );
}

/**
 * The dialog of the search, whose results are those of the search page (a combobox with a listbox popup, as in the WAI-ARIA
 * Authoring Practices).
 */
export function SearchDialog(): VNode {
  return (
    <dialog class="search-dialog" data-search aria-label={LABEL}>
      <form class="search-form" action={SEARCH_PATH} autocomplete="off">
        <Magnifier />
        <input
          class="input"
          type="text"
          name="q"
          maxLength={MAX_QUERY}
          role="combobox"
          aria-label={LABEL}
          aria-autocomplete="list"
          aria-expanded="false"
          aria-controls="found"
          placeholder={LABEL}
          autocapitalize="none"
          spellcheck={false}
          enterkeyhint="go"
        />
        <button type="button" class="search-close" data-search-close>
          Close
        </button>
      </form>
      <p class="search-status" role="status" data-search-status>
        Find an operation, an error code, a parameter, a field, a header or a guide.
      </p>
      <div id="found" class="found" role="listbox" aria-label="Results" hidden />
      <p class="search-keys">
        <span>
          <kbd>↑</kbd> <kbd>↓</kbd> to move
        </span>
        <span>
          <kbd>Enter</kbd> to open
        </span>
        <span>
          <kbd>Esc</kbd> to close
        </span>
        <label>
          <input type="checkbox" data-search-slash checked autocomplete="off" /> Open with <kbd>/</kbd>
        </label>
      </p>
    </dialog>
  );
}

/** The form of the search, which the server answers with a page. */
export function SearchForm({ query }: { readonly query?: string }): VNode {
  return (
    <form class="search-form" action={SEARCH_PATH}>
      <Magnifier />
      <input
        class="input"
        type="search"
        name="q"
        value={query}
        maxLength={MAX_QUERY}
        required
        aria-label={LABEL}
        placeholder="Search"
        autocapitalize="none"
        autocomplete="off"
        spellcheck={false}
        enterkeyhint="search"
      />
      <button class="button" type="submit">
        Search
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
