import Router from '@koa/router';
import { Problem } from '../errors.js';
import { boundConcurrency, type ConcurrencyLimits } from '../http/request/concurrency.js';
import type { Middleware } from '../http/request/context.js';
import { deadline } from '../http/request/deadline.js';
import type { PageContext, PageRouter, PageState } from './parts/context.js';
import type { PublicParts } from './public/context.js';
import { receiveForm } from './parts/forms/form.js';
import { setSecurityFields } from './parts/web/headers.js';
import { IMMUTABLE } from './parts/web/static-files.js';
import { addGuides } from './public/guides/guides.js';
import { addLandingPage } from './public/landing/landing.js';
import { errorPage, requireAnswer } from './parts/frame/error-page.js';
import { prepareSamples } from './parts/content/samples.js';
import { addReference } from './public/reference/reference.js';
import { addRootFiles } from './public/root-files.js';
import { addRevokeLeakedKey } from './public/revoke-leaked-key.js';
import { addSearch, prepareSearch } from './public/search/search-page.js';
import { addSettings } from './settings/settings.js';
import { addOidc } from './settings/sign-in/oidc.js';
import { addSignIn } from './settings/sign-in/sign-in.js';

export const PAGE_LIMITS = { running: 3, waiting: 100, perAddress: 25, perWindow: 300 } as const;

/** Routes the pages. The list is the whole path of a request for a page, from top to bottom. */
export function routePages(parts: PublicParts, limits: ConcurrencyLimits = PAGE_LIMITS): PageRouter {
  const router: PageRouter = new Router<PageState>({ sensitive: true });
  router.use(receiveForm);
  // Before the bound on pages: an error page needs its stylesheet too.
  for (const [path, file] of parts.site.files.representations) router.get(path, (ctx) => file.send(ctx, IMMUTABLE));
  router.use(async (_ctx, next) => {
    await prepareSamples();
    await next();
  });
  // The reference waits for nothing but its first rendering, which may outlast the deadline on a busy machine.
  addReference(router, parts);
  // Sign-ins wait for the identity provider within bounds of their own, so that pages do not wait with them.
  addOidc(router, parts);
  const openSearch = prepareSearch(router, parts);
  router.use(deadline(parts.requestTimeoutMs) as PageMiddleware);
  router.use(boundConcurrency(limits, parts.trustedProxies) as PageMiddleware);
  addLandingPage(router, parts);
  addGuides(router, parts);
  addRootFiles(router, parts);
  addSearch(router, openSearch);
  addSignIn(router, parts);
  addSettings(router, parts);
  addRevokeLeakedKey(router, parts);
  return router;
}

type PageMiddleware = Parameters<PageRouter['use']>[0];

/**
 * Serves the pages for people. Only a path whose first segment is that of a page enters the list above. Requests for the
 * API, probes and documents pass to the later stages. Errors are answered with a page, and so is a browser at a path that
 * nothing serves.
 */
export function createSite(parts: PublicParts, limits?: ConcurrencyLimits): Middleware {
  const router = routePages(parts, limits);
  const routes = router.routes() as unknown as Middleware;
  const allowMethods = router.allowedMethods() as unknown as Middleware;
  const hasPage = (path: string): boolean => router.match(path, 'GET').route;
  const entrances = new Set(pathsOf(router).map(firstSegment));

  return async (requestContext, next) => {
    const { isApi, path } = requestContext.state.target;
    if (isApi) return next();
    const ctx = requestContext as PageContext;
    // Only the path / has an empty first segment; //api does not belong to the pages.
    const isPage = path === '/' || (!path.startsWith('//') && entrances.has(firstSegment(path)));
    Object.assign(ctx.state, { site: parts.site, hasPage });
    try {
      if (!isPage) {
        await next();
        return;
      }
      setSecurityFields(ctx);
      await routes(ctx, () => allowMethods(ctx, () => Promise.resolve()));
      if (ctx.body === undefined) requireAnswer(ctx);
    } catch (error) {
      const isNotFound = error instanceof Problem && error.code === 'not_found';
      if (isNotFound ? !isBrowser(ctx) : !isPage) throw error;
      // Content that was not read to its end would be parsed as the next request.
      if (announcesContent(ctx) && ctx.state.form === undefined) ctx.set('Connection', 'close');
      setSecurityFields(ctx);
      errorPage(ctx, error);
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

function announcesContent({ req: { headers } }: PageContext): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** Whether a client prefers a page to a problem document. Tools accept anything, or JSON. */
function isBrowser(ctx: PageContext): boolean {
  return ctx.accepts('application/problem+json', 'application/json', 'text/html') === 'text/html';
}
