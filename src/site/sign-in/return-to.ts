import type { PageContext } from '../context.js';
import { readCookie, setCookie } from './cookies.js';

/** Where a sign-in leads when nothing else was asked for. */
export const SETTINGS = '/settings';

/** A page of the settings: nothing that leads to another host, and nothing that acts. */
const SETTINGS_PATH = /^\/settings(?:\/[A-Za-z0-9_-]+)*$/;

/** How long a sign-in may take, in seconds. */
const SIGN_IN_SECONDS = 1_800;

/**
 * Sends the browser to the sign-in page, from which it comes back.
 *
 * @param path - where to, a page of the settings; another path counts as {@link SETTINGS}
 */
export function redirectToSignIn(ctx: PageContext, path: string): void {
  setCookie(ctx, 'come-back', settingsPath(path), SIGN_IN_SECONDS);
  seeOther(ctx, '/sign-in');
}

/** Sends the browser to where it wanted to go before it signed in. */
export function returnTo(ctx: PageContext): void {
  const path = settingsPath(readCookie(ctx, 'come-back') ?? '');
  setCookie(ctx, 'come-back', undefined);
  seeOther(ctx, path);
}

/** Answers with 303, so that the browser asks for a page with GET. @param path - our own */
export function seeOther(ctx: PageContext, path: string): void {
  ctx.status = 303;
  ctx.set('Cache-Control', 'no-store');
  ctx.redirect(path);
}

/** A cookie is the browser's to change, so its path is checked when it is read as well. */
function settingsPath(path: string): string {
  return SETTINGS_PATH.test(path) ? path : SETTINGS;
}
