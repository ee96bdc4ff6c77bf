import { readCatalogCounts } from '../catalog/counts.js';
import { operation } from './operation.js';

export const getStats = operation('getStats', { cache: 'revalidate' }, async ({ read }) => {
  const { titles, movies, series, available_in_library, people, collections } = await read(readCatalogCounts);
  return { data: { titles, movies, series, available_in_library, people, svc_collections: collections } };
});
