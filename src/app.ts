import Koa from 'koa';
import type { Document } from 'openapi-backend';
import type { Logger } from 'pino';
import type { QuotaReader } from './admission/charge/limiter.js';
import type { Dependencies } from './api/operation.js';
import { closeWhileStopping } from './http/connection/pipelining.js';
import { dispatch } from './http/openapi/dispatch.js';
import { revokeLeakedKeys } from './http/leaked-keys/leaked-keys.js';
import type { ReportParts } from './http/leaked-keys/report.js';
import { serveCopies } from './http/copies/copies.js';
import { serveProbesAndContract, type ReadinessParts } from './http/probes/outside-api.js';
import type { DocumentParts } from './http/probes/documents.js';
import { authenticate, type AuthenticationParts } from './http/request/authenticate.js';
import { rejectBody } from './http/request/content.js';
import type { Middleware, RequestContext, RequestState } from './http/request/context.js';
import { deadline, type DeadlineParts } from './http/request/deadline.js';
import { requireHost } from './http/request/header-fields.js';
import { prepareRequest } from './http/request/prepare-request.js';
import { sendAnswers } from './http/response/answers.js';
import { problems } from './http/response/problems.js';
import { logFailedAnswers } from './http/telemetry/loggable-error.js';
import type { RequestMetrics } from './http/telemetry/metrics.js';
import { recordRequests } from './http/telemetry/record-requests.js';
import type { PublishedFolder } from './copies/published.js';
import type { UsageCounter } from './usage/usage-counter.js';
import type { PublicOptions } from './pages/public/context.js';
import type { Contract } from './pages/public/reference/contract.js';
import type { createSite } from './pages/site.js';

export interface AppParts
  extends Dependencies, AuthenticationParts, ReadinessParts, ReportParts, DocumentParts, DeadlineParts {
  readonly log: Logger;
  readonly requestMetrics: RequestMetrics;
  readonly usage: UsageCounter;
  readonly limiter: QuotaReader;
  /** Whether answers close their connections. */
  readonly closesConnections: () => boolean;
  /** The folder of published copies; undefined for a server that serves none. */
  readonly copies: PublishedFolder | undefined;
  /** Undefined for a server without pages for people. */
  readonly site: { readonly create: typeof createSite; readonly options: PublicOptions } | undefined;
}

/**
 * Creates the application. A request passes the stages below from top to bottom; a stage that changes an answer stands
 * above the stages that create it.
 *
 * @throws Error if the contract and the operations in `src/api` do not match
 */
export async function createApp(parts: AppParts): Promise<Koa<RequestState>> {
  const document = JSON.parse(parts.contract.json) as Document;
  const app = new Koa<RequestState>();
  app.on('error', logFailedAnswers(parts.log));
  app.use(prepareRequest);
  app.use(recordRequests(parts.log, parts.requestMetrics, parts.usage));
  app.use(closeWhileStopping(parts.closesConnections));
  app.use(problems);
  app.use(requireHost);
  app.use(onlyFor(outsideApi, revokeLeakedKeys(parts)));
  if (parts.site) {
    const { create, options } = parts.site;
    const site = create({ ...parts, contract: document as unknown as Contract, site: options });
    app.use(onlyFor(outsideApi, site));
  }
  app.use(onlyFor(withBody, rejectBody));
  const { copies } = parts;
  if (copies !== undefined) app.use(onlyFor(outsideApi, serveCopies({ ...parts, copies })));
  app.use(onlyFor(outsideApi, serveProbesAndContract(parts)));
  app.use(deadline(parts.requestTimeoutMs));
  app.use(authenticate(parts));
  app.use(sendAnswers);
  app.use(await dispatch(document, parts));
  return app;
}

/** Makes all other requests skip a stage. */
function onlyFor(applies: (ctx: RequestContext) => boolean, stage: Middleware): Middleware {
  return (ctx, next) => (applies(ctx) ? stage(ctx, next) : next());
}

function outsideApi({ state }: RequestContext): boolean {
  return !state.target.isApi;
}

function withBody({ req }: RequestContext): boolean {
  return 'content-length' in req.headers || 'transfer-encoding' in req.headers;
}
