import { readCounts } from '../catalog/counts.js';
import type { Handler } from './handler.js';

/** The totals of the catalogue. */
export const getStats: Handler<'getStats'> = async ({ read }) => {
  const { collections, ...counts } = await read(readCounts);
  return { data: { ...counts, svc_collections: collections } };
};
