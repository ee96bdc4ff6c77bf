import type { VNode } from 'preact';
import { spendSignInLink } from '../../accounts/sign-in-links.js';
import { ABSOLUTE_DAYS, startSession } from '../../accounts/sessions.js';
import type { Knex } from 'knex';
import { clientAddress } from '../../http/request/client-address.js';
import type { PageContext, PageRouter, SiteParts } from '../context.js';
import { formOf } from '../delivery/form.js';
import { PageError } from '../layout/error-page.js';
import { page } from '../layout/page.js';
import { returnTo } from './return-to.js';
import { readCookie, setCookie } from './cookies.js';

const DAY_SECONDS = 86_400;

/**
 * Adds the pages of sign-in links. Opening a link only shows a button, since programs that look for malware open links in
 * messages. The page is the same whether the link works or not, and costs no query.
 */
export function addSignInLink(router: PageRouter, { db, site, trustedProxies }: SiteParts): void {
  router.get('/sign-in/link/:token', (ctx) => {
    // Otherwise the browser would hand the link on as it loads what belongs to the page.
    ctx.set('Referrer-Policy', 'strict-origin');
    const { token = '' } = ctx.params as { token?: string };
    page(ctx, { title: 'Sign in', section: 'settings' }, <SignInLinkBody token={token} />);
  });

  router.post('/sign-in/link', async (ctx) => {
    const token = formOf(ctx).get('token') ?? undefined;
    if (await signIn(ctx, db, (transaction) => spendSignInLink(transaction, token))) {
      returnTo(ctx);
      return;
    }
    const attempt = await site.failedSignIns.count(clientAddress(ctx.req, trustedProxies));
    throw attempt.kind === 'over_limit' ? tooManyAttempts(attempt.standing.resetSeconds) : noSuchLink();
  });
}

/**
 * Signs somebody in. One transaction finds out who it is and starts the session. The browser gets its cookie.
 *
 * @param find - finds the id of the developer; undefined for nobody
 * @returns whether somebody is signed in
 */
export async function signIn(
  ctx: PageContext,
  db: Knex,
  find: (transaction: Knex.Transaction) => Promise<number | undefined>,
): Promise<boolean> {
  const token = await db.transaction(async (transaction) => {
    const developerId = await find(transaction);
    if (developerId === undefined) return undefined;
    const details = { developerId, userAgent: ctx.get('User-Agent'), replaced: readCookie(ctx, 'session') };
    return startSession(transaction, details);
  });
  if (token === undefined) return false;
  setCookie(ctx, 'session', token, ABSOLUTE_DAYS * DAY_SECONDS);
  return true;
}

function SignInLinkBody({ token }: { readonly token: string }): VNode {
  return (
    <div class="container">
      <h1>Sign in</h1>
      <p>This link signs you in to the settings of your project, on this browser, once.</p>
      <form method="post" action="/sign-in/link">
        <input type="hidden" name="token" value={token} />
        <button class="button button-primary" type="submit">
          Sign in
        </button>
      </form>
    </div>
  );
}

function noSuchLink(): PageError {
  return new PageError(
    403,
    'This link does not work',
    'It was used, it is older than ten minutes, or it is not complete. Ask the operator of this service for a new one.',
  );
}

/** For an address whose sign-ins have failed too often. */
export function tooManyAttempts(seconds: number): PageError {
  return new PageError(
    429,
    'Too many attempts',
    `Too many sign-ins from your address have failed. Wait ${seconds} s and try again.`,
    { 'Retry-After': String(seconds) },
  );
}
