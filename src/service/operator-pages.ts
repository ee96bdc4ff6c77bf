// The operator pages, as one module, which a server without them does not load.

export { createOperatorPages } from '../pages/operator/operator-pages.js';
export { readGuides } from '../pages/operator/guides/guides.js';
export { readStaticFiles } from '../pages/parts/web/static-files.js';
