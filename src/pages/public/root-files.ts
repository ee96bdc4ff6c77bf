import { Representation } from '../../http/response/representation.js';
import type { PageRouter } from '../parts/context.js';
import type { PublicOptions, PublicParts } from './context.js';
import { cached } from '../../platform/async/cached.js';
import { GUIDES_PATH } from './guides/guides.js';

/** Behind sign-in, or only the way there. */
const PRIVATE_PATHS = ['/settings', '/sign-in', '/sign-up'];

/** Icons change seldom, and their address never does. */
const A_DAY = 'public, max-age=86400';

/** Adds the files that programs look for at the root: `/llms.txt`, `/robots.txt` and `/favicon.ico`. */
export function addRootFiles(router: PageRouter, { site }: Pick<PublicParts, 'site'>): void {
  const overview = cached(() => new Representation(llmsText(site), 'text/plain; charset=utf-8'), Infinity);
  const lines = ['User-agent: *', ...PRIVATE_PATHS.map((path) => `Disallow: ${path}`), 'Allow: /', ''];
  const robots = new Representation(lines.join('\n'), 'text/plain; charset=utf-8');
  router.get('/llms.txt', async (ctx) => (await overview()).send(ctx, 'no-cache'));
  router.get('/robots.txt', (ctx) => robots.send(ctx, 'no-cache'));
  router.get('/favicon.ico', (ctx) => site.files.favicon.send(ctx, A_DAY));
}

/** An overview for language models, in the format of llmstxt.org. */
function llmsText({ guides, publicUrl }: PublicOptions): string {
  const origin = publicUrl();
  const link = (title: string, path: string, description: string): string =>
    `- [${title}](${origin}${path}): ${description}`;
  return [
    '# Catalog Lookup Service',
    '> A read-only HTTP API for a catalogue of movies, series, people and curated collections, with a feed of changes. ' +
      'It is for back ends and described by an OpenAPI contract.',
    `The base URL is ${origin}. Every path of the API begins with \`/api/v1\`, and every request needs an API key: ` +
      '`Authorization: Bearer <KEY>`. Errors are RFC 9457 problems; branch on their `code`.',
    '## API',
    [
      link('OpenAPI contract', '/openapi.yaml', 'Every operation, parameter, response and error.'),
      link('OpenAPI contract, JSON', '/openapi.json', 'The same as JSON.'),
      link('Reference', '/docs', 'The same as a page, with samples in six languages.'),
      link('Home page', '/', 'How to get a key, and the limits of each plan.'),
    ].join('\n'),
    '## Guides',
    guides.map(({ title, name, description }) => link(title, `${GUIDES_PATH}/${name}.md`, description)).join('\n'),
    '',
  ].join('\n\n');
}
