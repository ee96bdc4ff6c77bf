import type { PageContext } from '../context.js';
import { readCookie, setCookie } from './cookies.js';

/** Where a sign-in leads by default. */
export const SETTINGS = '/settings';

/** A page of the settings: no other host, and no path that only takes forms. */
const SETTINGS_PATH = /^\/settings(?:\/[A-Za-z0-9_-]+)*$/;

/** How long a sign-in may take, in seconds. */
const SIGN_IN_SECONDS = 1_800;

/**
 * Redirects to the sign-in page.
 *
 * @param path - the page of the settings to return to afterwards; another path counts as {@link SETTINGS}
 */
export function redirectToSignIn(ctx: PageContext, path: string): void {
  setCookie(ctx, 'return-to', settingsPath(path), SIGN_IN_SECONDS);
  seeOther(ctx, '/sign-in');
}

/** Redirects to the page that was requested before the sign-in. */
export function returnTo(ctx: PageContext): void {
  const path = settingsPath(readCookie(ctx, 'return-to') ?? '');
  setCookie(ctx, 'return-to', undefined);
  seeOther(ctx, path);
}

/** Redirects with 303, which a browser follows with GET. @param path - our own */
export function seeOther(ctx: PageContext, path: string): void {
  ctx.status = 303;
  ctx.set('Cache-Control', 'no-store');
  ctx.redirect(path);
}

/** The browser may change its cookies, so the path is also checked when it is read. */
function settingsPath(path: string): string {
  return SETTINGS_PATH.test(path) ? path : SETTINGS;
}
