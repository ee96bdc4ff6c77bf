import type { SiteOptions, SiteParts } from '../parts/context.js';
import type { Guide } from '../parts/guides/guide-pages.js';
import type { Contract } from './reference/contract.js';

/** The parts that the public pages are made from. */
export interface PublicParts extends SiteParts {
  readonly contract: Contract;
  readonly site: PublicOptions;
}

/** The options of the pages for people, and those of only the public pages. */
export interface PublicOptions extends SiteOptions {
  readonly guides: readonly Guide[];
}
