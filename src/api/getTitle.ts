import { findTitle } from '../catalog/titles.js';
import { Problem } from '../errors.js';
import { operation } from './operation.js';

/** One title by its id. */
export const getTitle = operation('getTitle', { cache: 'revalidate' }, async ({ read }, { path }) => {
  const title = await read(
    (db) => findTitle(db, path.title_id),
    // A replica may not have yet what a mirror has read of elsewhere.
    (found) => found !== undefined,
  );
  if (title === undefined) throw new Problem('title_not_found', 'The catalogue has no title with this id.');
  return { data: title };
});
