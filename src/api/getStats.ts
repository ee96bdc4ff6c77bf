import { readCatalogCounts, type Counts } from '../catalog/counts.js';
import { operation } from './operation.js';

export const getStats = operation('getStats', { cache: 'revalidate' }, async ({ read }) =>
  statsOf(await read(readCatalogCounts)),
);

/** @returns the body of the response. The landing page shows the same. */
export function statsOf(counts: Counts) {
  const { titles, movies, series, available_in_library, people, collections } = counts;
  return { data: { titles, movies, series, available_in_library, people, svc_collections: collections } };
}
