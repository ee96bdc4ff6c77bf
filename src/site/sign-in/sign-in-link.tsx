import { spendSignInLink } from '../../accounts/sign-in-links.js';
import { ABSOLUTE_DAYS, startSession } from '../../accounts/sessions.js';
import type { Knex } from 'knex';
import type { SignInWay } from '../../events/events.js';
import { clientAddress } from '../../http/request/client-address.js';
import type { PageContext, PageRouter, SiteParts } from '../context.js';
import { formParser } from '../delivery/form.js';
import { PageError } from '../layout/error-page.js';
import { FormActions } from '../layout/form-field.js';
import { Operator } from '../layout/operator.js';
import { page } from '../layout/page.js';
import { returnTo } from './return-to.js';
import { readCookie, setCookie } from './cookies.js';

const DAY_SECONDS = 86_400;

const parseLink = formParser({ token: { schema: {} } });

/**
 * Adds the pages of sign-in links. Opening a link only shows a button, since malware scanners open the links in messages.
 * The page is the same for every token and takes no query.
 */
export function addSignInLink(router: PageRouter, { db, site, trustedProxies }: SiteParts): void {
  router.get('/sign-in/link/:token', (ctx) => {
    // Keeps the token out of the Referer of the files that the page loads.
    ctx.set('Referrer-Policy', 'strict-origin');
    const { token = '' } = ctx.params as { token?: string };
    page(
      ctx,
      { title: 'Sign in', section: 'settings' },
      <>
        <p>Sign in to your project's settings in this browser. This link works only once.</p>
        <form method="post" action="/sign-in/link">
          <input type="hidden" name="token" value={token} />
          <FormActions label="Sign in" />
        </form>
      </>,
    );
  });

  router.post('/sign-in/link', async (ctx) => {
    const { token } = parseLink(ctx).values;
    if (await signIn(ctx, db, 'link', (transaction) => spendSignInLink(transaction, token))) {
      returnTo(ctx);
      return;
    }
    const attempt = await site.failedSignIns.count(clientAddress(ctx.req, trustedProxies));
    if (attempt.kind === 'over_limit') throw tooManyAttempts(attempt.state.resetSeconds);
    throw new PageError(
      403,
      'This sign-in link is not valid',
      <>
        A sign-in link works only once and expires after ten minutes. Check that you copied the whole link, or ask{' '}
        <Operator /> for a new one.
      </>,
    );
  });
}

/**
 * Signs somebody in: one transaction finds the developer and starts the session, and the browser gets its cookie.
 *
 * @param find - finds the id of the developer; undefined for nobody
 * @returns whether somebody is signed in
 */
export async function signIn(
  ctx: PageContext,
  db: Knex,
  way: SignInWay,
  find: (transaction: Knex.Transaction) => Promise<number | undefined>,
): Promise<boolean> {
  const token = await db.transaction(async (transaction) => {
    const developerId = await find(transaction);
    if (developerId === undefined) return undefined;
    const details = { developerId, way, userAgent: ctx.get('User-Agent'), replaced: readCookie(ctx, 'session') };
    return startSession(transaction, details);
  });
  if (token === undefined) return false;
  setCookie(ctx, 'session', token, ABSOLUTE_DAYS * DAY_SECONDS);
  return true;
}

/** For an address with too many failed sign-ins. */
export function tooManyAttempts(seconds: number): PageError {
  return new PageError(
    429,
    'Too many attempts',
    `Too many failed sign-ins from your IP address. Wait ${seconds} s and try again.`,
    { 'Retry-After': String(seconds) },
  );
}
