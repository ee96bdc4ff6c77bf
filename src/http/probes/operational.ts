import Router from '@koa/router';
import { Problem } from '../../errors.js';
import { clientHas, entityTag } from '../response/conditional.js';
import { serviceUnavailable } from '../request/deadline.js';
import { reportReadiness, type Readiness } from './readiness.js';

/** What an operator's probes and a developer's tools ask for, outside the API and without a key. */
export interface OperationalSources {
  /** The contract in both notations. */
  readonly contract: { readonly yaml: string; readonly json: string };
  /** Finds out in bounded time whether the service can answer requests. */
  readonly checkReadiness: () => Promise<Readiness>;
}

/** Routes `/livez`, `/readyz`, `/openapi.yaml` and `/openapi.json`. */
export function operationalRoutes({ contract, checkReadiness }: OperationalSources): Router {
  const router = new Router({ strict: true, sensitive: true });

  router.get('/livez', (ctx) => {
    ctx.set({ 'Cache-Control': 'no-store', 'Content-Type': 'application/json' });
    ctx.body = JSON.stringify({ status: 'alive' });
  });

  router.get('/readyz', async (ctx) => {
    const { isReady, reasons, warnings, checks } = reportReadiness(await checkReadiness());
    if (!isReady) {
      const detail = reasons.map((reason) => reason.detail).join(' ');
      throw serviceUnavailable({ detail, members: { reasons, checks } });
    }
    ctx.set({ 'Cache-Control': 'no-store', 'Content-Type': 'application/json' });
    const status = reasons.length === 0 ? 'ready' : 'degraded';
    ctx.body = JSON.stringify({
      status,
      ...(reasons.length > 0 && { reasons }),
      ...(warnings.length > 0 && { warnings }),
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

  return router;
}
