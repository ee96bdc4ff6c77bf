import { isValidLink, spendLink } from '../../../accounts/sign-in-links.js';
import { ABSOLUTE_DAYS, findSession, startSession } from '../../../accounts/sessions.js';
import type { Knex } from 'knex';
import type { SignInWay } from '../../../events/events.js';
import { clientAddress } from '../../../http/request/client-address.js';
import { browserName } from '../../parts/accounts.js';
import type { PageContext, PageRouter, SiteParts } from '../../parts/context.js';
import { PageError } from '../../parts/frame/error-page.js';
import { redirectAndConfirm } from '../../parts/frame/notices.js';
import { addLinkPage, readLink } from '../../parts/forms/link-page.js';
import { returnTo, SETTINGS } from './return-to.js';
import { readCookie, setCookie } from '../../parts/web/cookies.js';
import { Operator } from '../../parts/content/components.js';

const DAY_SECONDS = 86_400;

const LINK = '/sign-in/link';

/** Adds the pages of sign-in links. Their form signs in its sender. */
export function addSignInLink(router: PageRouter, parts: SiteParts): void {
  const isValid = (token: string): Promise<boolean> => isValidLink(parts.db, 'developer', token);
  const refuse = async (ctx: PageContext): Promise<void> => {
    if ((await findSession(parts.db, readCookie(ctx, 'session'))) !== undefined) {
      redirectAndConfirm(ctx, SETTINGS, 'signed_in_already');
      return;
    }
    throw new PageError(
      403,
      'This sign-in link is not valid',
      <>
        A sign-in link works only once and expires after ten minutes. Check that you copied the whole link, or ask{' '}
        <Operator /> for a new one.
      </>,
    );
  };
  addLinkPage(router, { path: LINK, opens: "your project's settings", isValid, refuse });

  router.post(LINK, async (ctx) => {
    const { token } = readLink(ctx).values;
    if (await signIn(ctx, parts, 'link', (transaction) => spendLink(transaction, 'developer', token))) {
      returnTo(ctx);
      return;
    }
    await countFailure(ctx, parts);
    await refuse(ctx);
  });
}

/**
 * Signs somebody in: one transaction finds the developer and starts the session, and the browser gets its cookie.
 *
 * @param find - finds the id of the developer; undefined if there is no such developer
 * @returns whether somebody is signed in
 */
export async function signIn(
  ctx: PageContext,
  { db, trustedProxies }: Pick<SiteParts, 'db' | 'trustedProxies'>,
  way: SignInWay,
  find: (transaction: Knex.Transaction) => Promise<number | null | undefined>,
): Promise<boolean> {
  const token = await db.transaction(async (transaction) => {
    const developerId = await find(transaction);
    if (typeof developerId !== 'number') return undefined;
    const userAgent = ctx.get('User-Agent');
    const from = { browser: browserName(userAgent), address: clientAddress(ctx.req, trustedProxies) };
    return startSession(transaction, { developerId, way, userAgent, from, replaced: readCookie(ctx, 'session') });
  });
  if (token === undefined) return false;
  setCookie(ctx, 'session', token, ABSOLUTE_DAYS * DAY_SECONDS);
  return true;
}

/** Counts a failed sign-in. @throws PageError 429 for an address with too many */
export async function countFailure(ctx: PageContext, { site, trustedProxies }: SiteParts): Promise<void> {
  const attempt = await site.failedSignIns.count(clientAddress(ctx.req, trustedProxies));
  if (attempt.kind === 'over_limit') throw tooManyAttempts(attempt.state.resetSeconds);
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
