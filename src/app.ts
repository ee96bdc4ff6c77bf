import Koa from 'koa';
import type { Document } from 'openapi-backend';
import type { Dependencies } from './api/operation.js';
import type { ConnectionCloser } from './http/connection/pipelining.js';
import { serveCopies, type CopiesParts } from './http/copies/copies.js';
import { revokeLeakedKeys, type LeakedKeyParts } from './http/leaked-keys/leaked-keys.js';
import { byContract } from './http/openapi/dispatch.js';
import type { DocumentParts } from './http/probes/documents.js';
import { serveProbesAndDocuments, type ReadinessParts } from './http/probes/probes.js';
import { authenticate, type AuthenticationParts } from './http/request/authenticate.js';
import { rejectBody } from './http/request/content.js';
import type { Middleware, RequestContext, RequestState } from './http/request/context.js';
import { deadline, type DeadlineParts } from './http/request/deadline.js';
import { prepareRequest, requireHost } from './http/request/prepare-request.js';
import { problems } from './http/response/problems.js';
import { logFailedAnswers } from './http/telemetry/redaction.js';
import { recordRequests, type RecordParts } from './http/telemetry/record-requests.js';

/** The parts of the application, by the stage that takes them. */
export interface AppParts {
  readonly record: Omit<RecordParts, 'operationOf'>;
  readonly closer: ConnectionCloser;
  /** The origin of the service, once its server listens. */
  readonly publicUrl: () => string;
  readonly leakedKeys: LeakedKeyParts;
  /** The pages for people; undefined for a server without them. */
  readonly pages: Middleware | undefined;
  /** Undefined for a server that serves no published copies. */
  readonly copies: CopiesParts | undefined;
  readonly probes: ReadinessParts & DocumentParts;
  readonly authentication: AuthenticationParts & DeadlineParts;
  readonly api: Dependencies & {
    /** `openapi.yaml` as JSON. */
    readonly contract: string;
  };
}

/**
 * Creates the application. A request passes the stages below from top to bottom; a stage that changes an answer stands
 * above the stages that create it.
 *
 * @throws Error if the contract and the operations in `src/api` do not match
 */
export async function createApp(parts: AppParts): Promise<Koa<RequestState>> {
  const { dispatch, operationOf } = await byContract(JSON.parse(parts.api.contract) as Document, parts.api);
  const app = new Koa<RequestState>();
  app.on('error', logFailedAnswers(parts.record.log));
  app.use(prepareRequest);
  app.use(recordRequests({ ...parts.record, operationOf }));
  app.use(parts.closer.middleware);
  app.use(problems(parts.publicUrl));
  app.use(requireHost);
  app.use(onlyFor(outsideApi, revokeLeakedKeys(parts.leakedKeys)));
  if (parts.pages) app.use(onlyFor(outsideApi, parts.pages));
  app.use(onlyFor(withBody, rejectBody));
  if (parts.copies) app.use(onlyFor(outsideApi, serveCopies(parts.copies)));
  app.use(onlyFor(outsideApi, serveProbesAndDocuments(parts.probes)));
  app.use(deadline(parts.authentication.requestTimeoutMs));
  app.use(authenticate(parts.authentication));
  app.use(dispatch);
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
