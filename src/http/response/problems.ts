import { Problem } from '../../errors.js';
import { isDatabaseUnavailable } from '../../platform/database.js';
import { serviceUnavailable } from '../request/deadline.js';
import type { Outgoing } from './outgoing.js';

/** Decides what the client is told about anything that was thrown. What is not a Problem is a bug, and not its business. */
export function toProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (isDatabaseUnavailable(error)) return serviceUnavailable({ cause: error });
  return new Problem(
    'internal_error',
    'The service made a mistake. It is logged with the request_id, which helps when you report it.',
    { cause: error },
  );
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

/** The media type of a problem document: RFC 9457 gives it no parameters. */
export const PROBLEM_MEDIA_TYPE = 'application/problem+json';

/** Answers with a problem. The fields that every answer to the request has stay. */
export function respondWithProblem(problem: Problem, requestId: string): Outgoing {
  const fields = ['Cache-Control', 'no-store', 'Content-Type', PROBLEM_MEDIA_TYPE];
  for (const [name, value] of Object.entries(problem.headers)) fields.push(name, value);
  return { status: problem.status, fields, body: problemDocument(problem, requestId) };
}
