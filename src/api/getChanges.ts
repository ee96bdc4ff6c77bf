import type { Knex } from 'knex';
import { getChangesPage } from '../catalog/changes.js';
import { parseSince } from '../catalog/since.js';
import { toSeconds } from '../platform/time/micros.js';
import type { Answer } from '../contract.js';
import { operation } from './operation.js';
import { PageTurns } from './page-turns.js';

interface Page {
  readonly feedId: string | undefined;
  /** Shared by the requests that share the page, and so is its text. */
  readonly answer: Answer<'getChanges'>;
}

const TURNS = new WeakMap<Knex, PageTurns<Page>>();

export const getChanges = operation(
  'getChanges',
  {
    cache: 'revalidate',
    compress: true,
    parameterErrors: { since: parseSince },
    nextPage: ({ meta }) => (meta.has_more ? `since=${meta.next_since}` : undefined),
  },
  async ({ db, read, now }, { search, setField }) => {
    const since = parseSince(search.getAll('since'));
    const turns = TURNS.get(db) ?? new PageTurns(db);
    TURNS.set(db, turns);
    const { feedId, answer } = await turns.load(String(since), async () => {
      const { entries, hasMore, nextSince, feedId } = await getChangesPage(db, read, since, now());
      return { feedId, answer: { data: entries, meta: { has_more: hasMore, next_since: toSeconds(nextSince) } } };
    });
    if (feedId !== undefined) setField('Feed-Id', feedId);
    return answer;
  },
);
