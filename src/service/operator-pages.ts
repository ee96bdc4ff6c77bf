// The operator pages, as one module: a server loads it with the first request for one of them. Most are scraped and
// never visited.

export { createOperatorPages } from '../pages/operator/operator-pages.js';
export { readGuides } from '../pages/operator/guides/guides.js';
export { readStaticFiles } from '../pages/parts/web/static-files.js';
