import { Problem } from '../../errors.js';
import { isDatabaseUnavailable } from '../../platform/postgres/errors.js';
import type { Middleware } from '../request/context.js';

/** How long a client should wait before it tries again while the service lacks something it needs, in seconds. */
const RETRY_AFTER_SECONDS = 2;

/** The media type of a problem document: RFC 9457 gives it no parameters. */
export const PROBLEM_MEDIA_TYPE = 'application/problem+json';

/** Answers with a problem wherever a later stage throws. Header fields that a stage has set before it threw stay. */
export const problems: Middleware = async (ctx, next) => {
  try {
    await next();
  } catch (error) {
    const problem = toProblem(error);
    ctx.state.error = problem.cause;
    ctx.status = problem.status;
    ctx.set({ 'Cache-Control': 'no-store', 'Content-Type': PROBLEM_MEDIA_TYPE, ...problem.headers });
    ctx.body = problemDocument(problem, ctx.state.requestId);
  }
};

/** Decides what the client learns of an error. One that is not a Problem is a bug, and none of the client's business. */
function toProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (isDatabaseUnavailable(error)) return serviceUnavailable({ cause: error });
  return new Problem(
    'internal_error',
    'The service made a mistake. It is logged with the request_id, which helps when you report it.',
    { cause: error },
  );
}

/** The answer while something the service needs is away. @param specifics - where there is more to say than that */
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
