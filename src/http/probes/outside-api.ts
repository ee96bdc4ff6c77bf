import Router from '@koa/router';
import { Problem } from '../../errors.js';
import type { DatabaseCheck } from '../../platform/database/database-check.js';
import type { Health } from '../../platform/telemetry/health.js';
import type { Warning } from '../../platform/postgres/connections/connection-budget.js';
import type { Middleware, RequestState } from '../request/context.js';
import { clientHas, entityTag } from '../response/conditional.js';
import { serviceUnavailable } from '../response/problems.js';
import { reportReadiness } from './readiness.js';

export interface ReadinessParts {
  readonly databaseCheck: DatabaseCheck;
  readonly health: Health;
  /** What readiness reports without a change of its status. */
  readonly warnings: () => readonly Warning[];
  /** Whether the service is shutting down: it still serves, but a balancer should send it nothing more. */
  readonly isStopping: () => boolean;
}

/** The contract in both notations: `openapi.yaml`, and the JSON that was generated from it. */
export interface ContractTexts {
  readonly yaml: string;
  readonly json: string;
}

/**
 * Answers every request outside the API, so that the later stages get only requests of the API. The paths of probes and
 * tools need no key: `/livez`, `/readyz`, `/openapi.yaml` and `/openapi.json`. There are no other paths.
 *
 * @returns a middleware that throws Problem not_found, method_not_allowed and service_unavailable
 */
export function answerOutsideApi(
  contract: ContractTexts,
  { databaseCheck, health, warnings, isStopping }: ReadinessParts,
): Middleware {
  const router = new Router<RequestState>({ strict: true, sensitive: true });

  router.get('/livez', (ctx) => {
    ctx.set({ 'Cache-Control': 'no-store', 'Content-Type': 'application/json' });
    ctx.body = JSON.stringify({ status: 'alive' });
  });

  router.get('/readyz', async (ctx) => {
    await databaseCheck.run();
    const { isReady, reasons, checks } = reportReadiness({ isStopping: isStopping(), states: health.states });
    if (!isReady) {
      const detail = reasons.map((reason) => reason.detail).join(' ');
      throw serviceUnavailable({ detail, members: { reasons, checks } });
    }
    const warned = warnings();
    ctx.set({ 'Cache-Control': 'no-store', 'Content-Type': 'application/json' });
    ctx.body = JSON.stringify({
      status: reasons.length === 0 ? 'ready' : 'degraded',
      ...(reasons.length > 0 && { reasons }),
      ...(warned.length > 0 && { warnings: warned }),
      checks,
    });
  });

  for (const [path, mediaType, text] of [
    ['/openapi.yaml', 'application/yaml', contract.yaml],
    ['/openapi.json', 'application/json', contract.json],
  ] as const) {
    const tag = entityTag(text);
    router.get(path, (ctx) => {
      ctx.status = 200;
      ctx.set({ 'Cache-Control': 'no-cache', ETag: tag, 'Content-Type': mediaType });
      if (clientHas(ctx.req, tag)) ctx.status = 304;
      else ctx.body = text;
    });
  }

  router.all(['/livez', '/readyz', '/openapi.yaml', '/openapi.json'], () => {
    throw new Problem('method_not_allowed', 'This path answers only to GET and HEAD.', {
      headers: { Allow: 'GET, HEAD' },
    });
  });

  const routes = router.routes() as Middleware;
  // Requests of the API do not pay for the router.
  return (ctx, next) => (ctx.state.target.isApi ? next() : routes(ctx, notFound));
}

function notFound(): never {
  throw new Problem('not_found', 'There is no such path. The API is under /api/v1, its contract at /openapi.yaml.');
}
