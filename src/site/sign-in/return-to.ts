import type { PageContext } from '../context.js';
import { addressOf, pageAddress } from '../delivery/page-address.js';
import { readCookie, setCookie } from './cookies.js';

/** Where a sign-in leads by default. */
export const SETTINGS = '/settings';

/** A page of the settings: no other host, and no path that only takes forms. */
const SETTINGS_PATH = /^\/settings(?:\/[A-Za-z0-9_-]+)*$/;

/** How long a sign-in may take, in seconds. */
const SIGN_IN_SECONDS = 1_800;

/** The parameter of a page whose form was sent but not processed, since it needs a sign-in. */
const INTERRUPTED = 'interrupted';

/** Why a form was not processed: the session had ended, or the sign-in was too long ago. */
export type Interruption = 'signed-out' | 'sign-in-too-old';

/**
 * Redirects to the sign-in page, which leads back to the page of this request. A form is then filled in as it was sent.
 *
 * @param reason - why the request needs a sign-in
 */
export function redirectToSignIn(ctx: PageContext, reason: Interruption): void {
  const address = addressOf(ctx, ctx.method === 'POST' ? [[INTERRUPTED, reason]] : []);
  setCookie(ctx, 'return-to', settingsAddress(address), SIGN_IN_SECONDS);
  seeOther(ctx, '/sign-in');
}

/** Redirects to the page that was requested before the sign-in. */
export function returnTo(ctx: PageContext): void {
  const address = readReturnAddress(ctx);
  setCookie(ctx, 'return-to', undefined);
  seeOther(ctx, address);
}

/** @returns the address of the page that the sign-in leads to */
export function readReturnAddress(ctx: PageContext): string {
  // The browser may change its cookies, so the address is also checked when it is read.
  return settingsAddress(readCookie(ctx, 'return-to') ?? '');
}

/** @returns why the form of a page was not processed; undefined for a page whose form was not sent */
export function interruptionOf(address: string): Interruption | undefined {
  const reason = new URLSearchParams(address.split('?')[1]).get(INTERRUPTED);
  return reason === 'signed-out' || reason === 'sign-in-too-old' ? reason : undefined;
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
