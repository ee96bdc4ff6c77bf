import { getChangesPage } from '../catalog/changes.js';
import { parseSince } from '../catalog/since.js';
import { toSeconds } from '../platform/time/micros.js';
import { operation } from './operation.js';

export const getChanges = operation(
  'getChanges',
  {
    cache: 'revalidate',
    compress: true,
    parameterErrors: { since: parseSince },
    nextPage: ({ meta }) => (meta.has_more ? `since=${meta.next_since}` : undefined),
  },
  async ({ db, read, now }, { search, setField }) => {
    const page = await getChangesPage(db, read, parseSince(search.getAll('since')), now());
    if (page.feedId !== undefined) setField('Feed-Id', page.feedId);
    return { data: page.entries, meta: { has_more: page.hasMore, next_since: toSeconds(page.nextSince) } };
  },
);
