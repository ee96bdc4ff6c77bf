import type { ComponentChildren } from 'preact';
import { Problem } from '../../../errors.js';
import { toProblem } from '../../../http/response/problems.js';
import type { PageContext } from '../context.js';
import { returnAddress } from '../web/addresses.js';
import { page } from './page.js';
import { Operator, Button } from '../content/components.js';

/** An error for the reader of a page. Its status may have no code in the contract of the API, such as 403. */
export class PageError extends Error {
  override readonly name = 'PageError';

  /**
   * @param title - the heading, a few words
   * @param detail - the fault and its remedy, without secrets
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

/** Replaces the detail, which is about calls of the API. */
const DETAILS: Partial<Record<number, ComponentChildren>> = {
  404: 'There is no page at this address. Check the address, or start from the home page.',
  500: (
    <>
      Something went wrong on our side. If it happens again, report it to <Operator /> and quote the request ID below.
    </>
  ),
  503: 'This page is temporarily unavailable. Try again in a few seconds.',
};

/** A link on an error page. */
interface NextStep {
  readonly address: string;
  readonly label: string;
}

const HOME: NextStep = { address: '/', label: 'Go to the home page' };
const SIGN_IN: NextStep = { address: '/sign-in', label: 'Go to the sign-in page' };

/** The next step after an error, by the first part of the path, and the page that shows whether a form changed something. */
const NEXT_STEPS: readonly { readonly path: string; readonly next: NextStep; readonly record?: NextStep }[] = [
  {
    path: '/settings/keys',
    next: { address: '/settings/keys', label: 'Go to your keys' },
    record: { address: '/settings/keys', label: 'your keys' },
  },
  {
    path: '/settings',
    next: { address: '/settings', label: 'Go to the settings' },
    record: { address: '/settings/events', label: 'the events' },
  },
  { path: '/sign-in', next: SIGN_IN },
  { path: '/sign-up', next: SIGN_IN },
];

/** An error as a page shows it. */
interface ShownError extends Pick<PageError, 'status' | 'title' | 'detail' | 'headers'> {
  /** The page that shows whether a form has changed something; undefined if it is safe to send the form again. */
  readonly record: NextStep | undefined;
  /** Where to go next. */
  readonly links: readonly NextStep[];
}

/** Answers with an error: the fault, the outcome of the form, where to go, and the request ID for the log. */
export function answerError(ctx: PageContext, { status, title, detail, headers, record, links }: ShownError): void {
  let outcome: ComponentChildren = 'Nothing was changed.';
  if (status >= 500 && record === undefined) {
    outcome = 'The form may have been processed. It does no harm to submit it again.';
  } else if (status >= 500 && record && ctx.state.mayHaveChanged) {
    const check = <a href={record.address}>{record.label}</a>;
    outcome = ['We don’t know whether this was saved. Check ', check, ' first.'];
  }
  ctx.set(headers);
  page(
    ctx,
    { title, status },
    <>
      <p class="lead">{detail}</p>
      {ctx.method === 'POST' && <p>{outcome}</p>}
      <p class="cluster">
        {links.map(({ address, label }) => (
          <Button key={address} href={address} label={label} />
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
  const { path, method } = ctx;
  const part = NEXT_STEPS.find((each) => path === each.path || path.startsWith(`${each.path}/`));
  const isForm = method === 'POST' && ctx.state.hasPage(path);
  const next = isForm ? { address: returnAddress(ctx), label: 'Back to the form' } : part?.next;
  answerError(ctx, {
    status,
    headers,
    title: shown instanceof Problem && status === 404 ? 'Page not found' : shown.title,
    detail: (shown instanceof Problem ? DETAILS[status] : undefined) ?? shown.detail,
    record: part?.record,
    links: next === undefined ? [HOME] : [next, HOME],
  });
}
