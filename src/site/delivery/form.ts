import { readContent } from '../../http/request/content.js';
import type { PageContext } from '../context.js';
import { PageError } from '../layout/error-page.js';
import { requireSameOrigin } from './same-origin.js';

/** The most content that a request may have, in bytes: a form of a few fields. */
const MAX_CONTENT = 16 * 1024;

/**
 * Reads the form that a request sends, before it takes a turn among the pages: a client may send slowly. Refuses forms that
 * another site has made a browser send.
 *
 * The connection closes after an error.
 *
 * @throws PageError 403 for such a form, 415 for other content
 * @throws Problem as {@link readContent} does
 */
export async function receiveForm(ctx: PageContext): Promise<void> {
  if (ctx.is('urlencoded') !== 'urlencoded') {
    throw new PageError(415, 'Not a form', 'This page takes a form (application/x-www-form-urlencoded).');
  }
  requireSameOrigin(ctx);
  ctx.state.form = new URLSearchParams(await readContent(ctx, MAX_CONTENT));
}

/** @returns the fields of the form that a request sent: each route for POST gets one */
export function formOf({ state }: PageContext): URLSearchParams {
  return state.form ?? new URLSearchParams();
}
