import type { PageContext } from '../context.js';
import { addressOf, pageAddress } from './page-address.js';
import { readCookie, setCookie } from './cookies.js';

/** Where a sign-in leads by default. */
export const SETTINGS = '/settings';

/** A page of the settings: no other host, and no path that only takes forms. */
const SETTINGS_PATH = /^\/settings(?:\/[A-Za-z0-9_-]+)*$/;

/** How long a sign-in may take, in seconds. */
const SIGN_IN_SECONDS = 1_800;

/** How long a notice waits for its page, in seconds. */
const WAITING_SECONDS = 60;

/** Why a form was not processed: the session had ended, or the sign-in was too long ago. */
export const INTERRUPTIONS = ['signed-out', 'sign-in-too-old'] as const;

/**
 * Redirects to the sign-in page, which leads back to the page of this request. A form is then filled in as it was sent,
 * and its page shows once that it was not processed.
 *
 * @param reason - why the request needs a sign-in
 */
export function redirectToSignIn(ctx: PageContext, reason: (typeof INTERRUPTIONS)[number]): void {
  const isForm = ctx.method === 'POST';
  // Another page that is opened meanwhile must not replace a form that was filled in.
  if (isForm || !isInterrupted(ctx)) {
    const address = settingsAddress(addressOf(ctx));
    setCookie(ctx, 'return-to', address, SIGN_IN_SECONDS);
    if (isForm) leaveNotice(ctx, address, reason, SIGN_IN_SECONDS);
  }
  seeOther(ctx, '/sign-in');
}

/** Whether a form waits for a sign-in. */
export function isInterrupted(ctx: PageContext): boolean {
  return INTERRUPTIONS.some((reason) => readCookie(ctx, 'notice')?.startsWith(`${reason}/`));
}

/** Redirects to the page that was requested before the sign-in. The browser may change its cookies. */
export function returnTo(ctx: PageContext): void {
  const address = settingsAddress(readCookie(ctx, 'return-to') ?? '');
  setCookie(ctx, 'return-to', undefined);
  seeOther(ctx, address);
}

/** Leaves a notice that the page at an address shows once. Another page may load before it, in another tab. */
export function leaveNotice(ctx: PageContext, address: string, name: string, seconds = WAITING_SECONDS): void {
  const [path = ''] = address.split('?');
  setCookie(ctx, 'notice', name + path, seconds);
}

/** @returns the name of the notice for the page of this request, once; undefined for none */
export function takeNoticeName(ctx: PageContext): string | undefined {
  const [, name, path] = /^([a-z_-]+)(\/.*)$/.exec(readCookie(ctx, 'notice') ?? '') ?? [];
  if (path !== ctx.path) return undefined;
  setCookie(ctx, 'notice', undefined);
  return name;
}

/** Redirects with 303, which a browser follows with GET. @param address - our own */
export function seeOther(ctx: PageContext, address: string): void {
  ctx.status = 303;
  ctx.set('Cache-Control', 'no-store');
  ctx.redirect(address);
}

/** @returns the same address, or {@link SETTINGS} unless it is that of a page of the settings */
function settingsAddress(address: string): string {
  const [path = '', query = ''] = address.split('?');
  return SETTINGS_PATH.test(path) ? pageAddress(path, new URLSearchParams(query)) : SETTINGS;
}
