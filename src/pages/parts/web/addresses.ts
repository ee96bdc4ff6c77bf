import { looksLikeKey } from '../../../keys/api-key.js';
import type { PageContext } from '../context.js';

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
export function returnAddress(ctx: PageContext): string {
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
 * person may have cleared a field; undefined ones are not.
 *
 * @param path - our own
 */
export function pageAddress(path: string, query: Iterable<readonly [string, string | undefined]>): string {
  // Somebody may have pasted a key into a field that is not for keys. Addresses are kept in histories and logs.
  const isKept = (text: string): boolean => text.length <= MAX_VALUE && !looksLikeKey(text);
  const kept = [...query].flatMap(([name, value]) =>
    value !== undefined && isKept(name) && isKept(value) ? [[name, value]] : [],
  );
  // In the target of a request, a plus is a plus.
  const search = new URLSearchParams(kept).toString().replaceAll('+', '%20');
  return search === '' || search.length > MAX_ADDRESS ? path : `${path}?${search}`;
}

/** Reads the query as forms with GET write it, where a plus is a space. */
export function queryOf({ state }: PageContext): URLSearchParams {
  return new URLSearchParams(state.target.querystring);
}

/** Redirects with 303, which a browser follows with GET. @param address - our own */
export function seeOther(ctx: PageContext, address: string): void {
  ctx.status = 303;
  ctx.set('Cache-Control', 'no-store');
  ctx.redirect(address);
}
