import { Problem } from '../../errors.js';
import type { Middleware } from './context.js';

/** Everything under this path needs a key, whether it exists or not. */
const API_ROOT = /^\/api\/v1(?:\/|$)/;

/** Whether a path belongs to the API. @param path - normalised */
export function isApiPath(path: string): boolean {
  return API_ROOT.test(path);
}

/**
 * Passes requests outside the API to a stage of their own, such as a router. The API does not pay for that stage, and
 * the later stages get only requests of the API.
 *
 * @throws Problem not_found when that stage calls its `next`
 */
export function outsideApi(stage: Middleware): Middleware {
  return (ctx, next) => (isApiPath(ctx.state.target.path) ? next() : stage(ctx, notFound));
}

function notFound(): never {
  throw new Problem('not_found', 'There is no such path. The API is under /api/v1, its contract at /openapi.yaml.');
}
