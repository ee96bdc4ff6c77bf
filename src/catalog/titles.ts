import { batched } from '../platform/postgres/batch.js';
import { Statement } from '../platform/postgres/database.js';
import type { FeedEntry } from './feed.js';

export interface Title extends FeedEntry {
  readonly available_in_library: boolean;
  /** RFC 3339, UTC, microseconds. */
  readonly created_at: string;
}

const FIND_TITLES = new Statement<Title, [ids: readonly string[]]>(
  'find-titles',
  `select svc_id, media_type, title, updated_at, has_bundles, available_in_library, created_at
     from titles
    where svc_id = any ((select $1)::text[])`,
);

/**
 * Finds a title by its id. Requests that arrive together share one query.
 *
 * @returns undefined if the catalogue has no such title
 */
export const findTitle = batched<string, Title | undefined>(async (db, ids) => {
  const titles = new Map<string, Title>();
  for (const title of await FIND_TITLES.rows(db, ids)) titles.set(title.svc_id, title);
  return ids.map((id) => titles.get(id));
});
