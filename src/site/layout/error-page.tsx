import type { ComponentChildren } from 'preact';
import { Problem } from '../../errors.js';
import { toProblem } from '../../http/response/problems.js';
import type { PageContext } from '../context.js';
import { Operator } from './operator.js';
import { page } from './page.js';

/** An error for the reader of a page. Its status may have no code in the contract of the API, such as 403. */
export class PageError extends Error {
  override readonly name = 'PageError';

  /**
   * @param title - the heading, a few words
   * @param detail - what happened and what to do, without secrets
   * @param cause - for the log, without secrets
   */
  constructor(
    readonly status: number,
    readonly title: string,
    readonly detail: ComponentChildren,
    readonly headers: Readonly<Record<string, string>> = {},
    cause?: Error,
  ) {
    super(`${status} ${title}`, { cause });
  }
}

/** For people, in place of the detail, which is about calls of the API. */
const DETAILS: Partial<Record<number, ComponentChildren>> = {
  404: 'There is no page at this address. Check the address, or start from the home page.',
  500: (
    <>
      Something went wrong on our side. If it happens again, report it to <Operator /> and quote the request ID below.
    </>
  ),
  503: 'This page is temporarily unavailable. Try again in a few seconds.',
};

/** Answers with an error as a page. */
export function errorPage(ctx: PageContext, error: unknown): void {
  const shown = error instanceof PageError ? error : toProblem(error);
  ctx.state.error = shown.cause;
  ctx.set(shown.headers);
  const { status } = shown;
  const title = shown instanceof Problem && status === 404 ? 'Page not found' : shown.title;
  page(
    ctx,
    { title, status },
    <>
      <p class="lead">{(shown instanceof Problem ? DETAILS[status] : undefined) ?? shown.detail}</p>
      <p>
        <a class="button" href="/">
          Go to the home page
        </a>
      </p>
      <p class="muted small">
        Error {status}. Request ID: <code>{ctx.state.requestId}</code>
      </p>
    </>,
  );
}
