import Router from '@koa/router';
import { Problem } from '../../errors.js';
import type { Health } from '../../platform/telemetry/health.js';
import type { Middleware, RequestState } from '../request/context.js';
import { methodNotAllowed, serviceUnavailable } from '../response/problems.js';
import { addDocuments, type DocumentParts } from './documents.js';

export interface ReadinessParts {
  readonly checkDatabase: () => Promise<void>;
  readonly health: Health;
  /** Whether the service is shutting down: it still serves, but a balancer should send it no more requests. */
  readonly isStopping: () => boolean;
}

const SHUTTING_DOWN = {
  code: 'shutting_down',
  detail: 'This server is shutting down. It keeps serving for a short time; send new requests elsewhere.',
};

/**
 * Answers every remaining request outside the API: probes and documents for tools, which need no key. There are no
 * other paths.
 *
 * @returns a middleware that throws Problem not_found, method_not_allowed and service_unavailable
 */
export function serveProbesAndDocuments(parts: ReadinessParts & DocumentParts): Middleware {
  const { checkDatabase, health, isStopping } = parts;
  const router = new Router<RequestState>({ strict: true, sensitive: true });

  router.get('/livez', (ctx) => {
    ctx.set({ 'Cache-Control': 'no-store', 'Content-Type': 'application/json' });
    ctx.body = JSON.stringify({ status: 'alive' });
  });

  router.get('/readyz', async (ctx) => {
    await checkDatabase();
    const { isReady, reasons, checks } = reportReadiness(health, isStopping());
    if (!isReady) {
      const detail = reasons.map((reason) => reason.detail).join(' ');
      throw serviceUnavailable({ detail, members: { reasons, checks } });
    }
    ctx.set({ 'Cache-Control': 'no-store', 'Content-Type': 'application/json' });
    ctx.body = JSON.stringify({
      status: reasons.length === 0 ? 'ready' : 'degraded',
      ...(reasons.length > 0 && { reasons }),
      checks,
    });
  });

  addDocuments(router, parts);

  router.all(
    router.stack.map(({ path }) => String(path)),
    () => {
      throw methodNotAllowed();
    },
  );

  const routes = router.routes() as Middleware;
  return (ctx) => routes(ctx, notFound);
}

/**
 * Distinguishes "degraded" from "not ready". A server without its database can answer nothing, and should get no
 * requests. Without another dependency it answers everything, at a cost. A balancer that removes servers without Redis
 * would remove all of them.
 */
function reportReadiness(health: Health, isStopping: boolean) {
  const { components, lost } = health;
  return {
    isReady: !isStopping && !lost.includes('database'),
    // Codes are for programs, and never renamed.
    reasons: [
      ...(isStopping ? [SHUTTING_DOWN] : []),
      ...lost.map((dependency) => ({
        code: `${dependency}_${components.get(dependency)?.state}`,
        detail: health.outageOf(dependency).consequence,
      })),
    ],
    checks: Object.fromEntries([...components].map(([dependency, { state }]) => [dependency, state])),
  };
}

function notFound(): never {
  throw new Problem('not_found', 'This path does not exist. The API is under /api/v1, its contract at /openapi.yaml.');
}
