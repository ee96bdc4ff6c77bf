import { Problem } from '../../errors.js';
import { isDatabaseUnavailable } from '../../platform/postgres/errors.js';
import type { Middleware, RequestContext } from '../request/context.js';

/** How long a client should wait before it tries again while a dependency is lost, in seconds. */
const RETRY_AFTER_SECONDS = 2;

/** The media type of a problem document: RFC 9457 gives it no parameters. */
export const PROBLEM_MEDIA_TYPE = 'application/problem+json';

/** Answers with a problem when a later stage throws. Header fields that a stage set before stay. */
export const problems: Middleware = async (ctx, next) => {
  try {
    await next();
  } catch (error) {
    answerProblem(ctx, error);
  }
};

/** Answers with the problem document of an error. The log gets its cause. */
function answerProblem(ctx: RequestContext, error: unknown): void {
  const problem = toProblem(error);
  ctx.state.error = problem.cause;
  ctx.status = problem.status;
  ctx.set({ 'Cache-Control': 'no-store', 'Content-Type': PROBLEM_MEDIA_TYPE, ...problem.headers });
  ctx.body = problemDocument(problem, ctx.state.requestId);
}

/** Decides what the client learns of an error. An error that is no Problem is a bug, whose text stays in the log. */
export function toProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (isDatabaseUnavailable(error)) return serviceUnavailable({ cause: error });
  return new Problem(
    'internal_error',
    'The service failed. Its log has the error under this request_id: quote it when you report the error.',
    { cause: error },
  );
}

/** The answer while an essential dependency is lost. @param specifics - for a more specific answer */
export function serviceUnavailable({
  detail = 'The service cannot answer at the moment. Try again after the seconds in Retry-After.',
  members = {},
  cause,
}: Partial<Pick<Problem, 'detail' | 'members' | 'cause'>>): Problem {
  const headers = { 'Retry-After': String(RETRY_AFTER_SECONDS) };
  return new Problem('service_unavailable', detail, { members, headers, cause });
}

/** The problem document (RFC 9457) of a problem, as JSON. */
export function problemDocument(problem: Problem, requestId: string): string {
  return JSON.stringify({
    type: problem.type,
    title: problem.title,
    status: problem.status,
    detail: problem.detail,
    code: problem.code,
    request_id: requestId,
    ...problem.members,
  });
}
