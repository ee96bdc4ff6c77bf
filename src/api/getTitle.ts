import { findTitle, refuseTitleId } from '../catalog/titles.js';
import { Problem } from '../errors.js';
import { operation } from './operation.js';

export const getTitle = operation(
  'getTitle',
  { cache: 'revalidate', parameterErrors: { title_id: refuseTitleId } },
  async ({ read }, { path }) => {
    const title = await read(
      (db) => findTitle(db, path.title_id),
      // A mirror may have read from the primary what a replica does not have yet.
      (found) => found !== undefined,
    );
    if (title === undefined) throw new Problem('title_not_found', 'The catalogue has no title with this id.');
    return { data: title };
  },
);
