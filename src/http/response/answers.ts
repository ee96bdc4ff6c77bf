import type { Answer, OperationId } from '../../contract.js';
import type { Middleware } from '../request/context.js';
import { Representation } from './representation.js';

const MEDIA_TYPE = 'application/json';

/** Those of long answers: requests may share one. */
const SHARED = new WeakMap<object, Representation>();

/**
 * Sends an operation's answer, which later stages have left in the request's state, as JSON according to the
 * operation's policy.
 *
 * Answers are `private`, since a shared cache must never serve one caller's answer to another, and `no-cache`, since a
 * client must revalidate a stored answer before it uses it.
 */
export const sendAnswers: Middleware = async (ctx, next) => {
  await next();
  const { operation, answer, answerFields = {}, timedOut } = ctx.state;
  if (operation === undefined || answer === undefined || timedOut) return;
  const { policy } = operation;
  if (policy.cache === 'never') {
    ctx.set({ ...answerFields, 'Content-Type': MEDIA_TYPE, 'Cache-Control': 'no-store' });
    ctx.body = JSON.stringify(answer);
    return;
  }
  const shared = answer as object;
  const representation = SHARED.get(shared) ?? new Representation(JSON.stringify(answer), MEDIA_TYPE);
  if (policy.compress) SHARED.set(shared, representation);
  await representation.send(ctx, 'private, no-cache', policy.compress ?? false);
  const page = ctx.status === 200 ? policy.nextPage?.(answer as Answer<OperationId>) : undefined;
  ctx.set(answerFields);
  // A query-only reference replaces the whole query, including a key in it, and is valid behind every proxy.
  if (page !== undefined) ctx.set('Link', `<?${page}>; rel="next"`);
};
