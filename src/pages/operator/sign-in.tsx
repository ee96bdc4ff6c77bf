import { randomBytes } from 'node:crypto';
import type { Next } from 'koa';
import type { VNode } from 'preact';
import { isValidLink, LINK_LIFETIME_MINUTES, spendLink } from '../../accounts/sign-in-links.js';
import type { PageContext, PageRouter } from '../parts/context.js';
import { CommandBlock, Notice } from '../parts/content/components.js';
import { PageError } from '../parts/frame/error-page.js';
import { page } from '../parts/frame/page.js';
import { addLinkPage, readLink } from '../parts/forms/link-page.js';
import { pageAddress, returnAddress, seeOther } from '../parts/web/addresses.js';
import type { OperatorParts } from './context.js';
import { ABSOLUTE_HOURS, OperatorSessions } from './sessions.js';

const SIGN_IN = '/sign-in';

/** Adds sign-in by link and sign-out. @returns the guard of all other pages */
export function addSignIn(
  router: PageRouter,
  { db, log }: Pick<OperatorParts, 'db' | 'log'>,
): (ctx: PageContext, next: Next) => Promise<void> {
  const sessions = new OperatorSessions();
  // Browsers send a host's cookies to all of its ports. With a separate name, a server does not end the session of
  // another one whose port is forwarded to the same machine.
  const id = randomBytes(4).toString('hex');
  const cookie = `catalog-operator-session-${id}`;
  const returnTo = `catalog-operator-return-${id}`;

  router.get(SIGN_IN, (ctx) => {
    page(ctx, { title: 'Sign in' }, <WayToSignIn isInterrupted={ctx.state.target.search.has('interrupted')} />);
  });

  const isValid = (token: string): Promise<boolean> => isValidLink(db, 'operator', token);
  const refuse = (): never => {
    throw new PageError(
      403,
      'This sign-in link is not valid',
      `A sign-in link works only once and expires after ${LINK_LIFETIME_MINUTES} minutes. Create a new one.`,
    );
  };
  addLinkPage(router, { path: SIGN_IN, opens: 'the operator pages', isValid, refuse });

  router.post(SIGN_IN, async (ctx) => {
    // No limit on failures: a link has 256 random bits, and all operators behind a tunnel have one address.
    if ((await spendLink(db, 'operator', readLink(ctx).values.token)) === undefined) refuse();
    sessions.end(ctx.cookies.get(cookie));
    setOperatorCookie(ctx, cookie, sessions.start());
    log.info({ request_id: ctx.state.requestId }, 'operator signed in');
    const requested = ctx.cookies.get(returnTo) ?? '';
    setOperatorCookie(ctx, returnTo, undefined);
    seeOther(ctx, pageOf(ctx, requested));
  });

  router.post('/sign-out', (ctx) => {
    sessions.end(ctx.cookies.get(cookie));
    setOperatorCookie(ctx, cookie, undefined);
    // The back button must not show the pages again.
    ctx.set('Clear-Site-Data', '"cache"');
    seeOther(ctx, SIGN_IN);
  });

  return async (ctx, next) => {
    ctx.set('Cache-Control', 'no-store');
    if (!sessions.has(ctx.cookies.get(cookie))) {
      setOperatorCookie(ctx, returnTo, pageOf(ctx, returnAddress(ctx)));
      seeOther(ctx, ctx.method === 'POST' ? `${SIGN_IN}?interrupted` : SIGN_IN);
      return;
    }
    ctx.state.mayHaveChanged = ctx.method === 'POST';
    await next();
  };
}

/** @param isInterrupted - whether a form was sent after the end of its session */
function WayToSignIn({ isInterrupted }: { readonly isInterrupted: boolean }): VNode {
  return (
    <>
      {isInterrupted && (
        <Notice tone="warning" role="alert">
          Your session had ended. <strong>Nothing was changed.</strong> Sign in and submit the form again.
        </Notice>
      )}
      <p>
        Create a one-time link on a machine that has the settings of this server, and open it in this browser within{' '}
        {LINK_LIFETIME_MINUTES} minutes.
      </p>
      <CommandBlock args="operator sign-in-link" />
      <p class="muted">
        A session ends after an hour without use, after {ABSOLUTE_HOURS} hours, and when the server restarts.
      </p>
    </>
  );
}

/** A path of these pages, without characters that a cookie cannot hold. */
const PAGE_PATH = /^(?:\/[A-Za-z0-9_-]+)+$/;

/** @returns an address of these pages, or that of the first page for any other: the browser may change its cookies */
function pageOf(ctx: PageContext, address: string): string {
  const [path = '', query = ''] = address.split('?');
  return PAGE_PATH.test(path) && ctx.state.hasPage(path) ? pageAddress(path, new URLSearchParams(query)) : '/';
}

/** No `Secure`, which browsers drop on plain http. The cookie is for the machine's own address, or a tunnel to it. */
function setOperatorCookie(ctx: PageContext, cookie: string, token: string | undefined): void {
  ctx.cookies.set(cookie, token ?? '', {
    httpOnly: true,
    sameSite: 'strict',
    path: '/',
    overwrite: true,
    ...(token !== undefined && { maxAge: ABSOLUTE_HOURS * 3_600_000 }),
  });
}
