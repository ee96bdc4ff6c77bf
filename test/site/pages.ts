import { GUIDES } from '../support/guides.js';

/** Every page that a service has, as a path. */
export const PAGES = [
  '/',
  '/docs',
  '/docs/guides',
  ...GUIDES.map((guide) => `/docs/guides/${guide}`),
  '/revoke-leaked-key',
  '/sign-in',
  `/sign-in/link/${'f'.repeat(64)}`,
];
