// The pages for people, as one module: a server without them does not load it, and starts in four fifths of the time.

export { readStaticFiles } from '../site/delivery/static-files.js';
export { readGuides } from '../site/guides/guide-files.js';
export { createSite } from '../site/site.js';
export { createSignIn } from './sign-in.js';
