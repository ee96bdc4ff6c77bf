import type { ComponentChildren, VNode } from 'preact';
import { Problem } from '../../../errors.js';
import { toProblem } from '../../../http/response/problems.js';
import type { PageContext } from '../context.js';
import { addressOf } from '../web/page-address.js';
import { page } from './page.js';
import { Operator } from '../content/values.js';

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

/** The link of an error page. */
interface NextStep {
  readonly address: string;
  readonly label: string;
}

const HOME: NextStep = { address: '/', label: 'Go to the home page' };
const KEYS: NextStep = { address: '/settings/keys', label: 'Go to your keys' };

function nextStep(ctx: PageContext): NextStep {
  const { path, method, state } = ctx;
  if (method === 'POST' && state.hasPage(path)) return { address: addressOf(ctx), label: 'Back to the form' };
  if (path.startsWith(`${KEYS.address}/`)) return KEYS;
  if (isIn('settings', path)) return { address: '/settings', label: 'Go to the settings' };
  return isIn('sign-in', path) || isIn('sign-up', path)
    ? { address: '/sign-in', label: 'Go to the sign-in page' }
    : HOME;
}

/** Whether a path is in a part of the site. */
function isIn(part: string, path: string): boolean {
  return path === `/${part}` || path.startsWith(`/${part}/`);
}

/** What became of the form that was sent. */
function Outcome({ ctx, status }: { readonly ctx: PageContext; readonly status: number }): VNode {
  const { path, state } = ctx;
  if (status < 500 || (isIn('settings', path) && state.mayHaveChanged !== true)) return <p>Nothing was changed.</p>;
  if (!isIn('settings', path)) return <p>The form may have been processed. It does no harm to submit it again.</p>;
  const [address, what] = path.startsWith(KEYS.address)
    ? [KEYS.address, 'your keys']
    : ['/settings/events', 'the events'];
  return (
    <p>
      Your change may have been made. Check <a href={address}>{what}</a> before you submit the form again.
    </p>
  );
}

/** An error as a page shows it. */
interface ShownError extends Pick<PageError, 'status' | 'title' | 'detail' | 'headers'> {
  /** For a form: what became of it. */
  readonly outcome: VNode;
  /** Where to go next. */
  readonly links: readonly NextStep[];
}

/** Answers with an error: what happened, what became of the form, where to go, and the request ID that leads to the cause in the log. */
export function answerError(ctx: PageContext, { status, title, detail, headers, outcome, links }: ShownError): void {
  ctx.set(headers);
  page(
    ctx,
    { title, status },
    <>
      <p class="lead">{detail}</p>
      {ctx.method === 'POST' && outcome}
      <p class="cluster">
        {links.map(({ address, label }) => (
          <a key={address} class="button" href={address}>
            {label}
          </a>
        ))}
      </p>
      <p class="muted small">
        Error {status}. Request ID: <code>{ctx.state.requestId}</code>
      </p>
    </>,
  );
}

/** Answers a developer, or anybody else, with an error as a page. */
export function errorPage(ctx: PageContext, error: unknown): void {
  const shown = error instanceof PageError ? error : toProblem(error);
  ctx.state.error = shown.cause;
  const { status, headers } = shown;
  const next = nextStep(ctx);
  answerError(ctx, {
    status,
    headers,
    title: shown instanceof Problem && status === 404 ? 'Page not found' : shown.title,
    detail: (shown instanceof Problem ? DETAILS[status] : undefined) ?? shown.detail,
    outcome: <Outcome ctx={ctx} status={status} />,
    links: next === HOME ? [HOME] : [next, HOME],
  });
}
