import { load } from 'js-yaml';
import Koa from 'koa';
import type { Knex } from 'knex';
import type { Document } from 'openapi-backend';
import type { Logger } from 'pino';
import type { Micros } from './catalog/timestamps.js';
import { Problem } from './errors.js';
import { authenticate, type AuthenticationParts } from './http/request/authenticate.js';
import { respondConditionally } from './http/response/conditional.js';
import { isWaitedFor } from './http/connection/turns.js';
import { ignoreContent } from './http/request/content.js';
import { withinDeadline } from './http/request/deadline.js';
import { describeRequestError } from './http/telemetry/loggable-error.js';
import type { RequestMetrics } from './http/telemetry/metrics.js';
import { operationalRoutes } from './http/probes/operational.js';
import { createDispatch } from './http/openapi/dispatch.js';
import { send, type Outgoing } from './http/response/outgoing.js';
import { respondWithProblem, toProblem } from './http/response/problems.js';
import { rateLimitExceeded, rateLimitFields } from './http/response/rate-limit-fields.js';
import { chooseRequestId } from './http/request/request-id.js';
import { recordWhenDone } from './http/telemetry/request-log.js';
import { originForm, parseQuery, requireHost, splitTarget } from './http/request/target.js';
import type { Listener } from './http/connection/server.js';
import type { RequestContext, RequestState } from './http/request/state.js';
import type { LastUsed } from './keys/last-used.js';
import type { Warning } from './platform/connection-budget.js';
import type { DatabaseCheck } from './platform/database-check.js';
import type { Health } from './platform/health.js';
import type { WriteLine } from './platform/log.js';
import type { Read } from './platform/replica.js';

/** What the application is made of. */
export interface AppParts {
  /** The text of `openapi.yaml`. */
  readonly contract: string;
  /** The primary. */
  readonly db: Knex;
  /** For what may be read from a replica. */
  readonly read: Read;
  readonly authentication: AuthenticationParts;
  readonly lastUsed: LastUsed;
  readonly health: Health;
  readonly databaseCheck: DatabaseCheck;
  /** What readiness tells beside. */
  readonly warnings: () => readonly Warning[];
  readonly log: Logger;
  /** For the lines of requests. */
  readonly requestLog: WriteLine;
  readonly requestMetrics: RequestMetrics;
  /** The clock of this process, in microseconds since 1970. */
  readonly now: () => Micros;
  /** Whether the service is shutting down: it still serves, but a balancer should send it nothing more. */
  readonly isStopping: () => boolean;
}

/** Everything under here needs a key, whether it exists or not. */
const API_ROOT = /^\/api\/v1(?:\/|$)/;

/** A cache must never serve one caller's answer to another. */
const VARY_BY_KEY = 'Authorization, X-API-Key';

/** Builds the Koa application, and what hands requests to it: a request's whole way, top to bottom. */
export async function createApp(parts: AppParts): Promise<Listener> {
  const { db, lastUsed, log, now } = parts;
  const contract = load(parts.contract) as Document;
  const dispatch = await createDispatch(contract, { db, read: parts.read, now });
  const operational = operationalRoutes({
    contract: { yaml: parts.contract, json: JSON.stringify(contract) },
    checkReadiness: async () => {
      await parts.databaseCheck.run();
      return { isStopping: parts.isStopping(), states: parts.health.states, warnings: parts.warnings() };
    },
  });
  const app = new Koa();

  // A connection that broke off during the answer, or an answer that could not be sent. Koa would write it to the console.
  app.on('error', (error: unknown, ctx: RequestContext) => {
    log.warn({ request_id: ctx.state.requestId, err: describeRequestError(error, ctx) }, 'answer failed');
  });

  // Every request gets an id, a line in the log, a count, and an answer that is in the contract.
  async function respond(ctx: RequestContext, next: Koa.Next): Promise<void> {
    const { path } = begin(ctx);
    recordWhenDone(parts.requestLog, parts.requestMetrics, ctx);
    let outgoing: Outgoing;
    try {
      requireHost(ctx.req);
      ignoreContent(ctx.req);
      if (!API_ROOT.test(path)) {
        ctx.set('X-Request-Id', ctx.state.requestId);
        await next();
        if (isLastOfConnection(ctx)) ctx.set('Connection', 'close');
        return;
      }
      outgoing = await withinDeadline(answerCaller(ctx));
    } catch (error) {
      const problem = toProblem(error);
      ctx.state.error = problem.cause;
      outgoing = respondWithProblem(problem, ctx.state.requestId);
    }
    send(ctx, outgoing, isLastOfConnection(ctx));
  }

  // The API: who is calling and what the plan still allows, in one step, and then the operation.
  async function answerCaller({ req, res, state }: RequestContext): Promise<Outgoing> {
    state.vary = VARY_BY_KEY;
    const { caller, decision } = await authenticate(parts.authentication, req, state.search);
    state.caller = caller;
    lastUsed.touch(caller.keyId, Number(now() / 1000n));
    state.fields.push(...rateLimitFields(decision.quotas));
    if (decision.violated.length > 0) throw rateLimitExceeded(decision);
    // Its time was up meanwhile, and it has been told so.
    if (res.headersSent) throw new Error('the request is answered already');
    const answer = await dispatch({
      method: req.method ?? '',
      path: state.path,
      querystring: state.querystring,
      search: state.search,
      caller,
      onRouted: (operationId) => {
        state.operationId = operationId;
      },
    });
    return respondConditionally(req, state.operationId, answer);
  }

  /** Clients are to go elsewhere, once each request is answered that they have sent. */
  function isLastOfConnection({ req }: RequestContext): boolean {
    return parts.isStopping() && !isWaitedFor(req);
  }

  /** What every request begins with, and every answer has. */
  function begin(ctx: RequestContext): RequestState {
    const { req } = ctx;
    req.url = originForm(req.url ?? '');
    const { path, querystring } = splitTarget(req.url);
    const requestId = chooseRequestId(req.headers['x-request-id']);
    const fields = ['X-Request-Id', requestId];
    return (ctx.state = { requestId, path, querystring, search: parseQuery(querystring), fields, vary: '' });
  }

  app.use(respond);
  // Outside the API: what needs no key.
  app.use(operational.routes());
  app.use(() => {
    throw new Problem('not_found', 'There is no such path. The API is under /api/v1, its contract at /openapi.yaml.');
  });

  // What Koa goes on to do for a request is done for those of the API by now: the answer is sent, and its end recorded. To
  // have Koa look for both again is a fifteenth of a short request. Other spellings of such a target may go Koa's whole way,
  // to the same end.
  const handleOthers = app.callback();
  return (req, res) => {
    if (!API_ROOT.test(req.url ?? '')) return handleOthers(req, res);
    const ctx = app.createContext(req, res) as RequestContext;
    return respond(ctx, noOthers).catch((error: unknown) => {
      ctx.onerror(error as Error);
    });
  };
}

function noOthers(): Promise<never> {
  return Promise.reject(new Error('a request of the API was taken for another one'));
}
