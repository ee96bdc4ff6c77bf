/** Every page that a service has, as a path. */
export const PAGES = ['/'];
