import Router from '@koa/router';
import { Problem } from '../errors.js';
import { rejectBody } from '../http/request/content.js';
import { clientAddress } from '../http/request/client-address.js';
import { boundConcurrency, type ConcurrencyLimits } from '../http/request/concurrency.js';
import type { Middleware } from '../http/request/context.js';
import { deadline } from '../http/request/deadline.js';
import type { PageContext, PageState, SiteParts } from './context.js';
import { receiveForm } from './delivery/form.js';
import { setSecurityFields } from './delivery/headers.js';
import { addGuides } from './guides/guides.js';
import { addLandingPage } from './landing/landing.js';
import { errorPage } from './layout/error-page.js';
import { addReference } from './reference/reference.js';
import { addRevokeLeakedKey } from './revoke-leaked-key/revoke-leaked-key.js';
import { addSettings } from './settings/settings.js';
import { addOidc } from './sign-in/oidc.js';
import { addSignIn } from './sign-in/sign-in.js';

const PAGE_LIMITS: ConcurrencyLimits = { running: 3, waiting: 100, ofOneAddress: 25 };

/**
 * Serves the pages for people. Requests of the API and of probes go on to the later stages. A path that nobody knows is
 * answered with a page where the client is a browser. The address of a page with a slash at its end leads to the page.
 */
export function createSite(parts: SiteParts, limits: ConcurrencyLimits = PAGE_LIMITS): Middleware {
  const router = routePages(parts);
  // These pages wait for the provider of identities, within bounds of their own. Other pages must not wait for them.
  const providerRouter = new Router<PageState>({ strict: true, sensitive: true });
  addOidc(providerRouter, parts);

  const withDeadline = deadline();
  const bounded = boundConcurrency(limits);
  const addressOf = ({ req }: PageContext): string => clientAddress(req, parts.trustedProxies);
  const stages = [
    { router, make: stageOf(router, (ctx, make) => withDeadline(ctx, () => bounded(ctx.state, addressOf(ctx), make))) },
    { router: providerRouter, make: stageOf(providerRouter, (_ctx, make) => make()) },
  ];

  /** Answers each error as a page, since a person asked. */
  async function answer(ctx: PageContext, stage: () => Promise<unknown>): Promise<void> {
    Object.assign(ctx.state, { site: parts.site });
    setSecurityFields(ctx);
    try {
      await stage();
    } catch (error) {
      // Its content is not read, or not to its end: nothing else can come on this connection.
      if (announcesContent(ctx) && ctx.state.form === undefined) ctx.set('Connection', 'close');
      errorPage(ctx, error);
    }
  }

  return async (requestContext, next) => {
    const { path, isApi } = requestContext.state.target;
    if (isApi) return next();
    const ctx = requestContext as PageContext;
    if (parts.site.files.has(path)) {
      return answer(ctx, async () => {
        requireMethod(ctx, ['GET', 'HEAD']);
        await rejectBody(ctx, () => parts.site.files.send(ctx));
      });
    }
    for (const { router, make } of stages) {
      const methods = methodsAt(router, path, ctx.method);
      if (methods.length === 0) continue;
      return answer(ctx, async () => {
        requireMethod(ctx, methods);
        if (ctx.method !== 'POST') return rejectBody(ctx, () => make(ctx, next));
        await receiveForm(ctx);
        return make(ctx, next);
      });
    }
    const page = path.slice(0, -1);
    if (path.endsWith('/') && ['GET', 'HEAD'].includes(ctx.method) && methodsAt(router, page, 'GET').includes('GET')) {
      return answer(ctx, () => rejectBody(ctx, () => moveTo(ctx, page)));
    }
    try {
      await next();
    } catch (error) {
      if (!(error instanceof Problem && error.code === 'not_found' && isBrowser(ctx))) throw error;
      await answer(ctx, () => Promise.reject(error));
    }
  };
}

/** Routes the pages. A further part of the site is one more line. The tests visit each route. */
export function routePages(parts: SiteParts): Router<PageState> {
  const router = new Router<PageState>({ strict: true, sensitive: true });
  addLandingPage(router, parts);
  addReference(router, parts);
  addGuides(router, parts);
  addSignIn(router, parts);
  addSettings(router, parts);
  addRevokeLeakedKey(router, parts);
  return router;
}

/** @returns the stage that makes the pages of a router @param bound - bounds their time and their number */
function stageOf(
  router: Router<PageState>,
  bound: (ctx: PageContext, make: () => Promise<void>) => Promise<void>,
): Middleware {
  const routes = router.routes() as unknown as Middleware;
  return (ctx, next) => bound(ctx as PageContext, () => routes(ctx, next));
}

/** @returns the methods that routes answer at a path; none where there is no such page */
function methodsAt(router: Router<PageState>, path: string, method: string): readonly string[] {
  return [...new Set(router.match(path, method).path.flatMap(({ methods }) => methods))].sort();
}

/** Leads to another address with the same query. */
async function moveTo(ctx: PageContext, path: string): Promise<void> {
  const { querystring } = ctx.state.target;
  ctx.status = 301;
  ctx.set({ Location: querystring === '' ? path : `${path}?${querystring}`, 'Cache-Control': 'no-store' });
}

/** @throws Problem method_not_allowed for another method */
function requireMethod(ctx: PageContext, methods: readonly string[]): void {
  if (methods.includes(ctx.method)) return;
  const allowed = methods.join(', ');
  throw new Problem('method_not_allowed', `This page answers only to ${allowed}.`, { headers: { Allow: allowed } });
}

function announcesContent({ req: { headers } }: PageContext): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** Whether a client wants a page more than a problem document. Tools take anything, or JSON. */
function isBrowser(ctx: PageContext): boolean {
  return ctx.accepts('application/problem+json', 'application/json', 'text/html') === 'text/html';
}
