import type { PageRouter } from '../../parts/context.js';
import type { PublicOptions, PublicParts } from '../context.js';
import { cached } from '../../../platform/async/cached.js';
import { EXAMPLE_ORIGIN } from '../../../http/probes/recent-examples.js';
import { Representation } from '../../../http/response/representation.js';
import {
  addGuidePages,
  addressOnPage,
  readGuideFiles,
  type Guide,
  type GuideShelf,
} from '../../parts/guides/guide-pages.js';
import { withoutScheme } from '../../parts/content/components.js';

/** Where the guides are. */
export const GUIDES_PATH = '/docs/guides';

/** The subject of each guide, in reading order. */
export const GUIDES = {
  'calling-the-api': 'Authenticate, stay within limits, cache and handle errors.',
  'generate-an-sdk': 'Turn the contract into a typed client, in TypeScript and other languages.',
  mirroring: 'Keep a copy of the catalogue in PostgreSQL that never misses a change.',
  'following-the-feed': 'Follow the changes with a loop of your own, in four languages.',
  'contract-tests': 'Check a deployment against its contract with Dredd or Schemathesis.',
  'developer-settings': 'Sign in, manage your keys, and read your usage and events.',
  'leaked-keys': 'Recognise and revoke a key that was found, by hand or from a secret scanner.',
  changes: 'What each version changes for callers, mirrors and operators, and what never changes.',
};

/** The addresses of the service in the guides: a local one for their programs, and a public one. */
const EXAMPLE_ORIGINS = ['http://127.0.0.1:8080', EXAMPLE_ORIGIN];

const MARKDOWN = 'text/markdown; charset=utf-8';

/** Reads the guides for developers. @param packageRoot - the folder of this package's package.json */
export function readGuides(packageRoot: string): Promise<readonly Guide[]> {
  return readGuideFiles(`${packageRoot}/src/pages/public/guides`, GUIDES);
}

/** Adds the guides for developers: a list of them, and for each a page and its text as Markdown. */
export function addGuides(router: PageRouter, { site }: Pick<PublicParts, 'site'>): void {
  const markdownPath = ({ name }: Guide): string => `${GUIDES_PATH}/${name}.md`;
  const textOf = ({ text }: Guide): string => asDeployed(text, site);
  const shelf: GuideShelf = {
    guides: site.guides,
    frame: site,
    path: GUIDES_PATH,
    lead: 'How to call the API and mirror the catalogue, for developers.',
    markdownPath,
    textOf,
  };
  addGuidePages(router, shelf);
  for (const guide of site.guides) {
    const markdown = cached(
      () => new Representation(`# ${guide.title}\n${withoutDeadLinks(textOf(guide), shelf)}`, MARKDOWN),
      Infinity,
    );
    router.get(markdownPath(guide), async (ctx) => (await markdown()).send(ctx, 'no-cache'));
  }
}

/** The words of a guide that the credit replaces. */
const CREDIT = /the\s+credit\s+that\s+the\s+operator\s+of\s+this\s+service\s+requires/;

/** @returns the text of a guide with this service's address in its commands, its operator's contact, and its credit */
function asDeployed(text: string, { attribution, operatorContact, publicUrl }: PublicOptions): string {
  const credited = attribution === undefined ? text : text.replace(CREDIT, () => `this credit: \`${attribution}\``);
  const shown = EXAMPLE_ORIGINS.reduce((changed, origin) => changed.replaceAll(origin, publicUrl()), credited);
  const operator =
    operatorContact === undefined ? 'your administrator' : `[${withoutScheme(operatorContact)}](${operatorContact})`;
  return shown.replaceAll(/the\s+operator\s+of\s+this\s+service/g, () => operator);
}

/** @returns Markdown whose links fit the addresses of the site. Those to other guides are relative. */
function withoutDeadLinks(text: string, shelf: GuideShelf): string {
  return text.replaceAll(/\[([^\]]+)\]\(([^)\s]+)\)/g, (link, words: string, address: string) =>
    addressOnPage(address, shelf) === undefined ? words : link,
  );
}
