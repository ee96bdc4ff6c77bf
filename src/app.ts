import { parse } from 'yaml';
import Koa from 'koa';
import type { Knex } from 'knex';
import type { Document } from 'openapi-backend';
import type { Logger } from 'pino';
import type { Micros } from './catalog/timestamps.js';
import { Problem } from './errors.js';
import { authenticate, type AuthenticationParts } from './http/authenticate.js';
import { respondConditionally } from './http/conditional.js';
import { ignoreContent } from './http/content.js';
import { Deadline } from './http/deadline.js';
import type { RequestMetrics } from './http/metrics.js';
import { operationalRoutes } from './http/operational.js';
import { createDispatch } from './http/operations.js';
import { respondWithProblem, toProblem } from './http/problem-response.js';
import { rateLimitExceeded, rateLimitFields } from './http/rate-limit-fields.js';
import { chooseRequestId } from './http/request-id.js';
import { recordWhenDone } from './http/request-log.js';
import { originForm, requireHost } from './http/request-target.js';
import { callerOf, type RequestContext } from './http/state.js';
import type { LastUsed } from './keys/last-used.js';
import type { DatabaseCheck } from './platform/database-check.js';
import type { Health } from './platform/health.js';
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
  readonly log: Logger;
  readonly requestMetrics: RequestMetrics;
  /** The clock of this process, in microseconds since 1970. */
  readonly now: () => Micros;
  /** Whether the service is shutting down: it still answers, but a balancer should send it nothing more. */
  readonly isStopping: () => boolean;
}

/** Everything under here needs a key, whether it exists or not. */
const API_ROOT = /^\/api\/v1(?:\/|$)/;

/** Bound on everything that one request waits for, in milliseconds: an outage is answered within a second. */
const REQUEST_DEADLINE_MS = 900;

/** Builds the Koa application: a request's whole way, top to bottom. */
export async function createApp(parts: AppParts): Promise<Koa> {
  const { db, lastUsed, log, now } = parts;
  const contract = parse(parts.contract) as Document;
  const dispatch = await createDispatch(contract, { db, read: parts.read, now });
  const operational = operationalRoutes({
    contract: { yaml: parts.contract, json: JSON.stringify(contract) },
    checkReadiness: async () => {
      await parts.databaseCheck.run();
      return { isStopping: parts.isStopping(), states: parts.health.states };
    },
  });
  const app = new Koa();

  // A connection that broke off during the answer. Koa would write it to the console.
  app.on('error', (error: unknown, ctx: RequestContext) => {
    log.warn({ request_id: ctx.state.requestId, err: error }, 'connection failed');
  });

  // Every request gets an id, a line in the log, a count, and an answer that is in the contract.
  app.use(async (ctx: RequestContext, next) => {
    ctx.req.url = originForm(ctx.req.url ?? '');
    ctx.state.requestId = chooseRequestId(ctx.req.headers['x-request-id']);
    // A plus is a plus (RFC 3986), as in 1.795218005e+09; it stands for a blank in forms alone.
    ctx.state.search = new URLSearchParams(ctx.querystring.replaceAll('+', '%2B'));
    ctx.state.deadline = new Deadline(REQUEST_DEADLINE_MS);
    ctx.set('X-Request-Id', ctx.state.requestId);
    recordWhenDone(log, parts.requestMetrics, ctx);
    try {
      await next();
    } catch (error) {
      const problem = toProblem(error);
      ctx.state.error = problem.cause;
      respondWithProblem(ctx, problem);
    }
    // A kept connection would hold up the end.
    if (parts.isStopping()) ctx.set('Connection', 'close');
  });

  app.use(async (ctx, next) => {
    requireHost(ctx.req);
    ignoreContent(ctx.req);
    await next();
  });

  // Outside the API: what needs no key.
  app.use(operational.routes());
  app.use(async (ctx, next) => {
    if (!API_ROOT.test(ctx.path)) {
      throw new Problem('not_found', 'There is no such path. The API is under /api/v1, its contract at /openapi.yaml.');
    }
    ctx.set('Vary', 'Authorization, X-API-Key');
    await next();
  });

  // The API: who is calling and what the plan still allows, in one step, and then the operation.
  app.use(async (ctx: RequestContext, next) => {
    const { deadline, search } = ctx.state;
    const { caller, decision } = await deadline.wait(authenticate(parts.authentication, ctx.req, search));
    ctx.state.caller = caller;
    lastUsed.touch(caller.keyId, new Date(Number(now() / 1000n)));
    ctx.set(rateLimitFields(decision.quotas));
    if (decision.violated.length > 0) throw rateLimitExceeded(decision);
    await next();
  });

  app.use(async (ctx: RequestContext) => {
    const { deadline, search } = ctx.state;
    const answer = await deadline.wait(
      dispatch({
        method: ctx.method,
        path: ctx.path,
        querystring: ctx.querystring,
        search,
        caller: callerOf(ctx),
        onRouted: (operationId) => {
          ctx.state.operationId = operationId;
        },
      }),
    );
    respondConditionally(ctx, answer);
  });

  return app;
}
