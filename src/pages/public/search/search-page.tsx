import type { ComponentChildren, VNode } from 'preact';
import { looksLikeKey } from '../../../keys/api-key.js';
import type { PageRouter } from '../../parts/context.js';
import type { PublicParts } from '../context.js';
import { cached } from '../../../platform/async/cached.js';
import { queryOf, seeOther } from '../../parts/web/addresses.js';
import { answerPage } from '../../parts/frame/page.js';
import { MAX_QUERY, SEARCH_PATH } from '../../parts/content/search-form.js';
import { listEntries } from './search-index.js';
import { createSearch, type Found, type Piece, type Results, type Search } from './search.js';

const LIST = new Intl.ListFormat('en', { type: 'disjunction' });

/** The parameter of the page that a search for a key leads to. */
const REFUSED = 'key-refused';

/** The message for a query that looks like a key. */
const KEY_REFUSED = 'That looks like an API key. Keys are secret: do not search for them.';

/** Makes the index of the search, once. */
export function openSearch({ contract, site }: Pick<PublicParts, 'contract' | 'site'>): () => Promise<Search> {
  return cached(async () => createSearch(await listEntries(contract, site.guides)), Infinity);
}

/** Adds the search of the reference and the guides. */
export function addSearch(router: PageRouter, search: () => Promise<Search>): void {
  router.get(SEARCH_PATH, async (ctx) => {
    const parameters = queryOf(ctx);
    const wanted = parameters.get('q') ?? '';
    if (looksLikeKey(wanted)) {
      // The key leaves the address, which is kept in histories.
      seeOther(ctx, `${SEARCH_PATH}?${REFUSED}`);
      return;
    }
    const query = wanted.trim().slice(0, MAX_QUERY);
    const results = query === '' ? { groups: [], missing: [] } : (await search())(query);
    const { groups } = results;
    const description = 'Search the reference and the guides.';
    answerPage(
      ctx,
      { title: 'Search', section: 'docs', description, query },
      <div class="container">
        <h1>Search</h1>
        <p role="status" data-results>
          {parameters.has(REFUSED) ? KEY_REFUSED : resultsLine(query, results)}
        </p>
        <div class="found" data-results>
          {groups.map(({ group, found }) => (
            <section key={group} aria-label={group}>
              <h2>{group}</h2>
              <ul>
                {found.map((each) => (
                  <Result key={each.entry.address} {...each} />
                ))}
              </ul>
            </section>
          ))}
          {groups.length === 0 && (
            <p>
              Or browse the <a href="/docs">reference</a> and the <a href="/docs/guides">guides</a>.
            </p>
          )}
        </div>
      </div>,
    );
  });
}

function resultsLine(query: string, { groups, missing }: Results): string {
  if (query === '') return 'Find an operation, an error code, a parameter, a field, a header or a guide.';
  const total = groups.reduce((sum, group) => sum + group.total, 0);
  const shown = groups.reduce((sum, { found }) => sum + found.length, 0);
  const isStatus = missing.length === 1 && /^[1-5][0-9]{2}$/.test(missing[0] ?? '');
  const unknown = isStatus
    ? ` The API never responds with status ${missing.join()}.`
    : missing.length > 0
      ? ` Nothing contains ${LIST.format(missing.map((word) => `“${word}”`))}.`
      : '';
  if (total === 0) return `No results for “${query}”.${unknown} Check the spelling, or try more general words.`;
  const count = shown < total ? `${shown} of ${total} results` : total === 1 ? '1 result' : `${total} results`;
  return `${count} for “${query}”.${unknown}`;
}

function Result({ entry: { context, address, places = [] }, name, snippet }: Found): VNode {
  const [first, second] = places;
  const found = (...more: readonly ComponentChildren[]): VNode => (
    <>
      <b>
        <Pieces pieces={name} />
      </b>{' '}
      <small>
        {context}
        {more}
      </small>
      <span>
        <Pieces pieces={snippet} />
      </span>
    </>
  );
  return (
    <li>
      {second === undefined ? (
        <a class="found-entry" href={address}>
          {found(first && ` · ${first.label}`)}
        </a>
      ) : (
        <div class="found-entry">
          {found(places.map((place, index) => [index === 0 ? ' · ' : ', ', <a href={place.address}>{place.label}</a>]))}
        </div>
      )}
    </li>
  );
}

function Pieces({ pieces }: { readonly pieces: readonly Piece[] }): VNode {
  return <>{pieces.map(({ text, isMatch }) => (isMatch ? <mark>{text}</mark> : text))}</>;
}
