import Router from '@koa/router';
import type { Middleware } from 'koa';
import { Problem } from '../../errors.js';
import { methodNotAllowed } from '../../http/response/problems.js';
import type { RequestContext } from '../../http/request/context.js';
import type { PageContext, PageFrame, PageRouter, PageState, StaticFiles } from './context.js';
import { receiveForm } from './forms/form.js';
import { IMMUTABLE } from './web/static-files.js';

/** Creates a router of pages that receives forms and serves the files that every page loads. */
export function createPageRouter({ representations }: Pick<StaticFiles, 'representations'>): PageRouter {
  const router: PageRouter = new Router<PageState>({ sensitive: true });
  router.use(receiveForm);
  // Before any bound on pages: an error page needs its stylesheet too.
  for (const [path, file] of representations) router.get(path, (ctx) => file.send(ctx, IMMUTABLE));
  return router;
}

/** Answers requests by pages. */
interface PageServer {
  /** @throws the errors of the page, and Problem if no page answers */
  readonly answer: (ctx: PageContext) => Promise<void>;
  /** Answers with an error as a page. */
  readonly answerError: (ctx: PageContext, error: unknown) => void;
}

/** Serves the pages of a router. @param errorPage - answers with an error */
export function servePages(
  router: PageRouter,
  site: PageFrame,
  errorPage: (ctx: PageContext, error: unknown) => void,
): PageServer {
  const routes = router.routes() as unknown as Middleware<PageState>;
  const allowMethods = router.allowedMethods() as unknown as Middleware<PageState>;
  const hasPage = (path: string): boolean => router.match(path, 'GET').route;

  function prepare(ctx: PageContext): void {
    Object.assign(ctx.state, { site, hasPage });
    setSecurityFields(ctx);
  }

  return {
    async answer(ctx) {
      prepare(ctx);
      await routes(ctx, () => Promise.resolve(allowMethods(ctx, () => Promise.resolve())));
      if (ctx.body === undefined) requireAnswer(ctx);
    },
    answerError(ctx, error) {
      prepare(ctx);
      // Content that was not read to its end would be parsed as the next request.
      if (announcesContent(ctx) && ctx.state.form === undefined) ctx.set('Connection', 'close');
      errorPage(ctx, error);
    },
  };
}

/** @throws Problem for the status that the router leaves where no route answers */
function requireAnswer({ status, response }: PageContext): void {
  if (status === 404) throw new Problem('not_found', 'There is no page at this path.');
  if (status === 405 || status === 501) throw methodNotAllowed(response.get('Allow'));
}

function announcesContent({ req: { headers } }: PageContext): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** No inline style or script, nothing from another origin, no frame around a page. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "style-src 'self'",
  "script-src 'self'",
  "connect-src 'self'",
  "img-src 'self'",
  "font-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Sets the header fields of every response of the site, including errors. */
function setSecurityFields(ctx: RequestContext): void {
  ctx.set({
    'Content-Security-Policy': CONTENT_SECURITY_POLICY,
    'Referrer-Policy': 'same-origin',
    'X-Content-Type-Options': 'nosniff',
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Resource-Policy': 'same-origin',
  });
}
