import { Problem, problemType } from '../../errors.js';
import { isDatabaseUnavailable } from '../../platform/postgres/errors.js';
import type { Middleware } from '../request/context.js';

/** When clients should retry while a dependency is down, in seconds. */
const RETRY_AFTER_SECONDS = 2;

/** RFC 9457 defines no parameters for it. */
export const PROBLEM_MEDIA_TYPE = 'application/problem+json';

/**
 * Answers with a problem document if a later stage throws. Header fields that were already set stay; the log gets the
 * cause.
 *
 * @param publicUrl - the origin of the service
 */
export const problems =
  (publicUrl: () => string): Middleware =>
  async (ctx, next) => {
    try {
      await next();
    } catch (error) {
      const problem = toProblem(error);
      ctx.state.problem = problem;
      ctx.state.error = problem.cause;
      ctx.status = problem.status;
      ctx.set({ 'Cache-Control': 'no-store', 'Content-Type': PROBLEM_MEDIA_TYPE, ...problem.headers });
      ctx.body = problemDocument(problem, ctx.state.requestId, publicUrl());
    }
  };

/** Converts any error to a Problem for the client. Any other error is a bug, and its text stays in the log. */
export function toProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (isDatabaseUnavailable(error)) return serviceUnavailable({ cause: error });
  return new Problem('internal_error', 'Something went wrong on our side. Quote this request_id when you report it.', {
    cause: error,
  });
}

/** The problem of a request that cannot be served for now, with the detail and members of a more specific cause. */
export function serviceUnavailable({
  detail = 'The service is temporarily unavailable. Retry after the number of seconds in Retry-After.',
  members = {},
  cause,
}: Partial<Pick<Problem, 'detail' | 'members' | 'cause'>>): Problem {
  const headers = { 'Retry-After': String(RETRY_AFTER_SECONDS) };
  return new Problem('service_unavailable', detail, { members, headers, cause });
}

/** The problem of a request with a method that its path does not have. @param allowed - as in `Allow` */
export function methodNotAllowed(allowed = 'GET, HEAD'): Problem {
  const names = new Intl.ListFormat('en-GB').format(allowed.split(', ').toSorted());
  return new Problem('method_not_allowed', `This path supports only ${names}.`, { headers: { Allow: allowed } });
}

/** Serialises a problem as its document (RFC 9457). @param publicUrl - undefined where its code has no reference */
export function problemDocument(problem: Problem, requestId: string, publicUrl?: string): string {
  return JSON.stringify({
    type: problem.type ?? (publicUrl === undefined ? 'about:blank' : problemType(problem.code, publicUrl)),
    title: problem.title,
    status: problem.status,
    detail: problem.detail,
    code: problem.code,
    request_id: requestId,
    ...problem.members,
  });
}
