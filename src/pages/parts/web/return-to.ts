import type { PageContext } from '../context.js';
import { addressOf, pageAddress } from './page-address.js';
import { readCookie, setCookie } from './cookies.js';

/** Where a sign-in leads by default. */
export const SETTINGS = '/settings';

/** A page of the settings: no other host, and no path that only takes forms. */
const SETTINGS_PATH = /^\/settings(?:\/[A-Za-z0-9_-]+)*$/;

/** How long a sign-in may take, in seconds. */
const SIGN_IN_SECONDS = 1_800;

/** The parameter of a page whose form was sent but not processed, since it needs a sign-in. */
const INTERRUPTED = 'interrupted';

/** How long a notice waits for its page, in seconds. */
const WAITING_SECONDS = 60;

/** Why a form was not processed: the session had ended, or the sign-in was too long ago. */
export type Interruption = 'signed-out' | 'sign-in-too-old';

/**
 * Redirects to the sign-in page, which leads back to the page of this request. A form is then filled in as it was sent.
 *
 * @param reason - why the request needs a sign-in
 */
export function redirectToSignIn(ctx: PageContext, reason: Interruption): void {
  // Another page that is opened meanwhile must not replace a form that was filled in.
  if (ctx.method === 'POST' || readReturn(ctx).interruption === undefined) {
    const address = addressOf(ctx, ctx.method === 'POST' ? [[INTERRUPTED, reason]] : []);
    setCookie(ctx, 'return-to', settingsAddress(address), SIGN_IN_SECONDS);
  }
  seeOther(ctx, '/sign-in');
}

/** Redirects to the page that was requested before the sign-in, which shows once that its form was not processed. */
export function returnTo(ctx: PageContext): void {
  const { address, interruption } = readReturn(ctx);
  setCookie(ctx, 'return-to', undefined);
  if (interruption !== undefined) leaveNotice(ctx, address, interruption);
  seeOther(ctx, address);
}

/** Where a sign-in leads. */
interface Return {
  readonly address: string;
  /** Why the form of that page was not processed; undefined for a page whose form was not sent. */
  readonly interruption: Interruption | undefined;
}

/** Reads where the sign-in leads. The browser may change its cookies, so the address is also checked here. */
export function readReturn(ctx: PageContext): Return {
  const [path = '', search = ''] = (readCookie(ctx, 'return-to') ?? '').split('?');
  const query = new URLSearchParams(search);
  const reason = query.get(INTERRUPTED);
  query.delete(INTERRUPTED);
  return {
    address: settingsAddress(`${path}?${query}`),
    interruption: reason === 'signed-out' || reason === 'sign-in-too-old' ? reason : undefined,
  };
}

/** Leaves a notice that the page at an address shows once. Another page may load before it, in another tab. */
export function leaveNotice(ctx: PageContext, address: string, name: string): void {
  const [path = ''] = address.split('?');
  setCookie(ctx, 'notice', name + path, WAITING_SECONDS);
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
