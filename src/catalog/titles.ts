import type { Knex } from 'knex';
import { Statement } from '../platform/statement.js';
import type { FeedEntry } from './feed.js';

/** A title as the lookup gives it: the feed's entry and what a mirror asks for second. */
export interface Title extends FeedEntry {
  readonly available_in_library: boolean;
  /** RFC 3339, UTC, microseconds. */
  readonly created_at: string;
}

const FIND_TITLE = new Statement<Title, [svcId: string]>('find-title', (db, svcId) =>
  db('titles')
    .select('svc_id', 'media_type', 'title', 'updated_at', 'has_bundles', 'available_in_library', 'created_at')
    .where('svc_id', svcId),
);

/** @returns the title with this id, undefined when the catalogue has none */
export function findTitle(db: Knex, svcId: string): Promise<Title | undefined> {
  return FIND_TITLE.first(db, svcId);
}
