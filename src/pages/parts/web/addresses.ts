import { looksLikeKey } from '../../../keys/api-key.js';
import type { PageContext } from '../context.js';
import { readCookie, setCookie } from './cookies.js';

/** The fields that a form gets back after a sign-in or an error. They contain neither keys nor tokens. */
const KEPT_FIELDS = ['label', 'lifetime', 'date', 'overlap', 'project_name', 'name'];

/** The longest value that a page gets back, in UTF-16 code units: that of a label of 200 characters. */
const MAX_VALUE = 400;

/** The longest address, which fits into a cookie. */
const MAX_ADDRESS = 3_500;

/**
 * The address to return to after a request. For GET it is the requested one. For POST it is the page with the form,
 * with the submitted fields in its query.
 */
export function addressOf(ctx: PageContext): string {
  const { method, path, state } = ctx;
  if (method !== 'POST') return pageAddress(path, queryOf(ctx));
  let page = path.replace(/\/$/, '');
  // A path that only takes forms has no page; the page with the form is above it.
  while (page !== '' && !state.hasPage(page)) page = page.slice(0, page.lastIndexOf('/'));
  const kept = KEPT_FIELDS.flatMap((name) => {
    const value = state.form?.get(name)?.trim();
    return value === undefined ? [] : [[name, value] as const];
  });
  return pageAddress(page === '' ? '/' : page, kept);
}

/**
 * Joins a path and a query. Parameters that are too long or contain a key are left out. Empty ones are kept, since a
 * person may have cleared a field.
 *
 * @param path - our own
 */
export function pageAddress(path: string, query: Iterable<readonly [string, string]>): string {
  // Somebody may have pasted a key into a field that is not for keys. Addresses are kept in histories and logs.
  const isKept = (text: string): boolean => text.length <= MAX_VALUE && !looksLikeKey(text);
  const kept = [...query].filter((parameter) => parameter.every(isKept));
  // In the target of a request, a plus is a plus.
  const search = new URLSearchParams(kept.map(([name, value]) => [name, value])).toString().replaceAll('+', '%20');
  return search === '' || search.length > MAX_ADDRESS ? path : `${path}?${search}`;
}

/** Reads the query as forms with GET write it, where a plus is a space. */
export function queryOf({ state }: PageContext): URLSearchParams {
  return new URLSearchParams(state.target.querystring);
}

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

/** @returns the name of the notice for the page of this request, once; undefined if there is no notice */
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

/** The paths of pages and documents that texts name and that anybody can open in a browser. */
export const OPENABLE_PATH = /^\/(docs|settings|status|revoke-leaked-key|openapi(-leaked-keys)?\.(yaml|json))$/;
