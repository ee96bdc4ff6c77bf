import type { PageContext } from '../../parts/context.js';
import { isInterrupted, leaveNotice, type Interruption } from '../../parts/frame/notices.js';
import { pageAddress, returnAddress, seeOther } from '../../parts/web/addresses.js';
import { readCookie, setCookie } from '../../parts/web/cookies.js';

/** Where a sign-in leads by default. */
export const SETTINGS = '/settings';

/** A page of the settings: no other host, and no path that only takes forms. */
const SETTINGS_PATH = /^\/settings(?:\/[A-Za-z0-9_-]+)*$/;

/** How long a sign-in may take, in seconds. */
const SIGN_IN_SECONDS = 1_800;

/**
 * Redirects to the sign-in page, which leads back to the page of this request. A form is then filled in as it was sent,
 * and its page shows once that it was not processed.
 *
 * @param reason - why the request needs a sign-in
 */
export function redirectToSignIn(ctx: PageContext, reason: Interruption): void {
  const isForm = ctx.method === 'POST';
  // Another page that is opened meanwhile must not replace a form that was filled in.
  if (isForm || !isInterrupted(ctx)) {
    const address = settingsAddress(returnAddress(ctx));
    setCookie(ctx, 'return-to', address, SIGN_IN_SECONDS);
    if (isForm) leaveNotice(ctx, address, reason, SIGN_IN_SECONDS);
  }
  seeOther(ctx, '/sign-in');
}

/** Redirects to the page that was requested before the sign-in. The browser may change its cookies. */
export function returnTo(ctx: PageContext): void {
  const address = settingsAddress(readCookie(ctx, 'return-to') ?? '');
  setCookie(ctx, 'return-to', undefined);
  seeOther(ctx, address);
}

/** @returns the same address, or {@link SETTINGS} unless it is that of a page of the settings */
function settingsAddress(address: string): string {
  const [path = '', query = ''] = address.split('?');
  return SETTINGS_PATH.test(path) ? pageAddress(path, new URLSearchParams(query)) : SETTINGS;
}
