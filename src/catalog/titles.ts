import { Problem } from '../errors.js';
import { batched } from '../platform/postgres/batch.js';
import { Statement } from '../platform/postgres/database.js';
import { TITLE_COLUMNS, type Title } from './columns.js';

const FIND_TITLES = new Statement<Title, [ids: readonly string[]]>(
  'find-titles',
  `select ${TITLE_COLUMNS.join(', ')} from titles where svc_id = any ((select $1)::text[])`,
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

/** Explains, for any operation that takes the id of a title, what an id must be. */
export function refuseTitleId(): never {
  throw new Problem(
    'invalid_parameter',
    'title_id must be 1 to 64 letters, digits, hyphens and underscores, such as blade-runner-1982.',
  );
}
