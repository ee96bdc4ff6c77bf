import { LONGEST_CHANGE_MS } from '../admission/change-callers.js';
import { Problem } from '../errors.js';
import { boundConcurrency, type ConcurrencyLimits } from '../http/request/concurrency.js';
import type { Middleware } from '../http/request/context.js';
import { deadline } from '../http/request/deadline.js';
import type { PageContext, PageRouter } from './parts/context.js';
import type { PublicParts } from './public/context.js';
import { readCookie } from './parts/web/cookies.js';
import { createPageRouter, servePages } from './parts/page-server.js';
import { addGuides } from './public/guides/guides.js';
import { addLandingPage } from './public/landing/landing.js';
import { errorPage } from './parts/frame/error-page.js';
import { prepareSamples } from './parts/content/samples.js';
import { SEARCH_PATH } from './parts/content/search-form.js';
import { addReference } from './public/reference/reference.js';
import { addRootFiles } from './public/root-files.js';
import { addRevokeLeakedKey } from './public/revoke-leaked-key.js';
import { addSearch, openSearch } from './public/search/search-page.js';
import { addStatusPage } from './public/status.js';
import { addSettings } from './settings/settings.js';
import { addOidc } from './settings/sign-in/oidc.js';
import { addSignIn } from './settings/sign-in/sign-in.js';

/**
 * The limits of pages for visitors. Signed-in developers have the same once more; what their pages read in parallel is
 * bounded by `readTogether`.
 */
export const PAGE_LIMITS = { running: 2, waiting: 100, perAddress: 25, perWindow: 300 } as const;

/** Routes the pages. The list is the whole path of a request for a page, from top to bottom. */
export function routePages(parts: PublicParts, limits: ConcurrencyLimits = PAGE_LIMITS): PageRouter {
  const router = createPageRouter(parts.site.files);
  const search = openSearch(parts);
  // Content that is made once may outlast the deadline on a busy machine: grammars, the index, and the reference.
  router.get(['/', '/docs', '/settings'], waitFor(prepareSamples));
  router.get(SEARCH_PATH, waitFor(search));
  const visitors = boundConcurrency(limits, parts.trustedProxies);
  const signedIn = boundConcurrency(limits, parts.trustedProxies);
  // Apart, so that no flood of visitors stands before developers who manage their keys. A cookie may be invented, so
  // addresses take turns there, too.
  const bound = ((ctx, next) =>
    (readCookie(ctx, 'session') === undefined ? visitors : signedIn)(ctx, next)) as PageMiddleware;
  router.get('/docs', bound);
  addReference(router, parts);
  // Sign-ins wait for the identity provider within separate bounds, so that pages do not wait with them.
  addOidc(router, parts);
  const reading = deadline(parts.requestTimeoutMs);
  // A change of a key is confirmed once every server applies it.
  const changing = deadline(parts.requestTimeoutMs + LONGEST_CHANGE_MS);
  router.use(((ctx, next) => (ctx.method === 'POST' ? changing : reading)(ctx, next)) as PageMiddleware);
  router.use(bound);
  addLandingPage(router, parts);
  addStatusPage(router, parts);
  addGuides(router, parts);
  addRootFiles(router, parts);
  addSearch(router, search);
  addSignIn(router, parts);
  addSettings(router, parts);
  addRevokeLeakedKey(router, parts);
  return router;
}

type PageMiddleware = Parameters<PageRouter['use']>[0];

function waitFor(prepare: () => Promise<unknown>): PageMiddleware {
  return async (_ctx, next) => {
    await prepare();
    await next();
  };
}

/**
 * Serves the pages for people. Only a path whose first segment is that of a page enters the list above. Requests for
 * probes and documents pass to the later stages. Errors are answered with a page, and so is a browser at a path that
 * nothing serves.
 */
export function createSite(parts: PublicParts, limits?: ConcurrencyLimits): Middleware {
  const router = routePages(parts, limits);
  const pages = servePages(router, parts.site, errorPage);
  const entrances = new Set(pathsOf(router).map(firstSegment));

  return async (requestContext, next) => {
    const ctx = requestContext as PageContext;
    const { path } = ctx.state.target;
    // Only the path / has an empty first segment; //docs does not belong to the pages.
    const isPage = path === '/' || (!path.startsWith('//') && entrances.has(firstSegment(path)));
    try {
      await (isPage ? pages.answer(ctx) : next());
    } catch (error) {
      const isNotFound = error instanceof Problem && error.code === 'not_found';
      if (isNotFound ? !isBrowser(ctx) : !isPage) throw error;
      pages.answerError(ctx, error);
    }
  };
}

/** @returns the paths of all routes, with their parameters as `:name` */
function pathsOf(router: PageRouter): string[] {
  return router.stack.filter(({ methods }) => methods.length > 0).map(({ path }) => String(path));
}

function firstSegment(path: string): string {
  return path.split('/', 2)[1] ?? '';
}

/** Whether a client prefers a page to a problem document. Tools accept anything, or JSON. */
function isBrowser(ctx: PageContext): boolean {
  return ctx.accepts('application/problem+json', 'application/json', 'text/html') === 'text/html';
}
