/** Every page that a service has, as a path. */
export const PAGES = ['/', '/docs', '/sign-in', `/sign-in/link/${'f'.repeat(64)}`];
