import { OperatorError } from '../../errors.js';
import { describeRequestError } from '../../http/telemetry/redaction.js';
import { toProblem } from '../../http/response/problems.js';
import type { Logger } from 'pino';
import { INSUFFICIENT_PRIVILEGE, sqlState } from '../../platform/postgres/errors.js';
import type { PageContext } from '../parts/context.js';
import { answerError, PageError } from '../parts/frame/error-page.js';
import type { OperatorParts } from './context.js';

/** Replaces the detail, which is about calls of the API. */
const DETAILS: Partial<Record<number, string>> = {
  404: 'There is no page at this address.',
  500: 'Something went wrong. The cause is in the log, under the request ID below.',
  503: 'PostgreSQL could not be used. The cause is in the log, under the request ID below.',
};

/** Converts any error to one that a page can show. Faults of the service go to the log. */
function toPageError(ctx: PageContext, error: unknown, log: Logger): PageError {
  if (error instanceof PageError) return error;
  if (lacksRights(error)) {
    return new PageError(
      403,
      "This server's database role may not do that",
      'Grant the role the rights in the guide “Operator pages”, or use the command line as the owner of the tables.',
    );
  }
  // The advice is for the command line.
  if (error instanceof OperatorError) {
    return error.kind === 'not_found'
      ? new PageError(404, 'Not found', error.message)
      : new PageError(409, 'That is not possible', error.message);
  }
  const problem = toProblem(error);
  const { status, title, detail, headers, cause } = problem;
  if (status >= 500) {
    log.error({ request_id: ctx.state.requestId, err: describeRequestError(cause, ctx) }, 'an operator page failed');
  }
  return new PageError(status, status === 404 ? 'Page not found' : title, DETAILS[status] ?? detail, headers);
}

function lacksRights(error: unknown): boolean {
  return sqlState(error) === INSUFFICIENT_PRIVILEGE;
}

/** Answers an operator with an error as a page. */
export function operatorErrorPage(ctx: PageContext, error: unknown, { log, health }: OperatorParts): void {
  const { status, title, detail, headers } = toPageError(ctx, error, log);
  if (ctx.method === 'POST' && status >= 500) health.noteFailedChange();
  answerError(ctx, {
    status,
    title,
    headers,
    detail,
    record: { address: '/developers', label: 'the developer' },
    links: [
      ...(lacksRights(error)
        ? [{ address: '/guides/operator-pages#developers', label: 'Guide “Operator pages”' }]
        : []),
      { address: '/', label: 'Go to the status' },
    ],
  });
}
