import { readCounts } from '../catalog/counts.js';
import type { Handler } from './handler.js';

/** The totals of the catalogue. */
export const getStats: Handler<'getStats'> = async ({ db }) => {
  const { collections, ...counts } = await readCounts(db);
  return { data: { ...counts, svc_collections: collections } };
};
