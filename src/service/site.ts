// The pages for people, as one module: a server without them does not load it, and starts in four fifths of the time.

export { readStaticFiles } from '../pages/parts/web/static-files.js';
export { readGuides } from '../pages/public/guides/guides.js';
export { createSite } from '../pages/site.js';
export { createSignIn } from './sign-in.js';
