import { readCounts } from '../catalog/counts.js';
import type { Handler } from './handler.js';

/** The totals of the catalogue. */
export const getStats: Handler<'getStats'> = async ({ read }) => {
  const { titles, movies, series, available_in_library, people, collections } = await read(readCounts);
  return { data: { titles, movies, series, available_in_library, people, svc_collections: collections } };
};
