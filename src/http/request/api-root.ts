import { Problem } from '../../errors.js';
import type { Middleware } from './context.js';

/** Everything under this path needs a key, whether it exists or not. */
const API_ROOT = /^\/api\/v1(?:\/|$)/;

/**
 * Lets requests of the API through.
 *
 * @throws Problem not_found for every other path
 */
export const requireApiPath: Middleware = ({ state }, next) => {
  if (API_ROOT.test(state.target.path)) return next();
  throw new Problem('not_found', 'There is no such path. The API is under /api/v1, its contract at /openapi.yaml.');
};
