// The operator pages, as one module: a server loads it with the first request for one of them. Most are scraped and never visited.

export { createOperatorPages } from '../operator-pages/operator-pages.js';
export { readStaticFiles } from '../site/delivery/static-files.js';
