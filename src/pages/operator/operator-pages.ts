import Koa from 'koa';
import type { Listener } from '../../http/connection/server.js';
import { deadline } from '../../http/request/deadline.js';
import { prepareRequest } from '../../http/request/prepare-request.js';
import { logFailedAnswers } from '../../http/telemetry/redaction.js';
import { readPlanNames } from '../parts/content/plan-name.js';
import type { PageContext, PageRouter, PageState } from '../parts/context.js';
import { createPageRouter, servePages } from '../parts/page-server.js';
import type { OperatorParts } from './context.js';
import { addDeveloper } from './developers/developer.js';
import { addDeveloperActs } from './developers/developer-acts.js';
import { addDevelopers } from './developers/developers.js';
import { addKey } from './developers/key.js';
import { operatorErrorPage } from './error-page.js';
import { addFailedKeys } from './failed-keys.js';
import { addGuides } from './guides/guides.js';
import { operatorFrame } from './layout.js';
import { addSettings } from './settings.js';
import { addSignIn } from './sign-in.js';
import { addStatus } from './status/status.js';

/** Bound on a page, in milliseconds: longer than on those of the public, which share their connections with the API. */
const DEADLINE_MS = 10_000;

/** Routes the operator pages. The list is the whole path of a request, from top to bottom. */
export function routeOperatorPages(parts: OperatorParts): PageRouter {
  const router = createPageRouter(parts.files);
  router.use(deadline(DEADLINE_MS) as Parameters<PageRouter['use']>[0]);
  addGuides(router, parts);
  // Whatever is added from here on needs a session.
  router.use(addSignIn(router, parts));
  addStatus(router, parts);
  router.use(['/developers/:id', '/keys/:prefix'], async (ctx, next) => {
    ctx.state.planNames = await readPlanNames(parts.db);
    await next();
  });
  addDevelopers(router, parts);
  addDeveloper(router, parts);
  addDeveloperActs(router, parts);
  addKey(router, parts);
  addFailedKeys(router, parts);
  addSettings(router, parts);
  return router;
}

/** Creates the pages for the operator, on the address of `/metrics`. They are not part of the public service. */
export function createOperatorPages(parts: OperatorParts): Listener {
  const pages = servePages(routeOperatorPages(parts), operatorFrame(parts), (ctx, error) => {
    operatorErrorPage(ctx, error, parts);
  });
  const app = new Koa<PageState>();
  app.on('error', logFailedAnswers(parts.log));
  app.use(prepareRequest);
  app.use(async (ctx: PageContext) => {
    try {
      await pages.answer(ctx);
    } catch (error) {
      pages.answerError(ctx, error);
    }
  });
  return app.callback();
}
