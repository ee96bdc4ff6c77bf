import type { Knex } from 'knex';
import type { FeedEntry } from './feed.js';

/** A title as the lookup gives it: the feed's entry and what a mirror asks for second. */
export interface Title extends FeedEntry {
  readonly available_in_library: boolean;
  /** RFC 3339, UTC, microseconds. */
  readonly created_at: string;
}

/** @returns the title with this id, undefined when the catalogue has none */
export async function findTitle(db: Knex, svcId: string): Promise<Title | undefined> {
  return db('titles')
    .select<Title[]>('svc_id', 'media_type', 'title', 'updated_at', 'has_bundles', 'available_in_library', 'created_at')
    .where('svc_id', svcId)
    .limit(1, { skipBinding: true })
    .options({ name: 'find-title' })
    .first();
}
