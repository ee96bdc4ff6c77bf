import { findTitle } from '../catalog/titles.js';
import { Problem } from '../errors.js';
import type { Handler } from './handler.js';

/** One title by its id. */
export const getTitle: Handler<'getTitle'> = async ({ db }, { path }) => {
  const title = await findTitle(db, path.title_id);
  if (title === undefined) throw new Problem('title_not_found', 'The catalogue has no title with this id.');
  return { data: title };
};
