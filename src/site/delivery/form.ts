import parse from 'co-body';
import { Problem } from '../../errors.js';
import { inTime } from '../../platform/process/in-time.js';
import type { PageContext } from '../context.js';
import { PageError } from '../layout/error-page.js';
import { requireSameOrigin } from './same-origin.js';

/** The most content that a request may have, in bytes: a form of a few fields. */
const MAX_CONTENT = 16 * 1024;

/** Bound on the time that the content takes to arrive, in milliseconds. */
const CONTENT_TIMEOUT_MS = 5_000;

/**
 * Reads what a request sends, before it takes a turn among the pages: a client may send slowly. Refuses forms that another
 * site has made a browser send.
 *
 * The connection closes after an error.
 *
 * @throws PageError 403 for such a form, 415 for other content
 * @throws Problem request_timeout after 5 seconds, content_too_large above 16 KiB, malformed_request for content cut short
 */
export async function receiveContent(ctx: PageContext): Promise<void> {
  const type = ctx.is('urlencoded', 'json');
  if (typeof type !== 'string') {
    throw unsupported(
      'Send a form (application/x-www-form-urlencoded), or JSON (application/json) where the page takes it.',
    );
  }
  const kind = type === 'json' ? 'json' : 'form';
  requireSameOrigin(ctx, kind);
  const text = await readText(ctx);
  ctx.state.content = kind === 'json' ? { kind, text } : { kind, fields: new URLSearchParams(text) };
}

/** @returns the fields of the form that a request sent @throws PageError 415 where it sent none */
export function formOf({ state }: PageContext): URLSearchParams {
  if (state.content?.kind !== 'form') {
    throw unsupported('This page takes a form (application/x-www-form-urlencoded).');
  }
  return state.content.fields;
}

async function readText(ctx: PageContext): Promise<string> {
  try {
    return await inTime(parse.text(ctx, { limit: MAX_CONTENT }) as Promise<string>, CONTENT_TIMEOUT_MS, tooSlow);
  } catch (error) {
    if (error instanceof Problem) throw error;
    const status = error instanceof Error && 'status' in error ? error.status : undefined;
    if (status === 413) throw new Problem('content_too_large', 'This address takes 16 KiB at most.');
    throw new Problem('malformed_request', 'The content did not arrive whole. Send it again.');
  }
}

function tooSlow(): Problem {
  return new Problem('request_timeout', 'The content did not arrive within 5 seconds. Send it again.');
}

function unsupported(detail: string): PageError {
  return new PageError(415, 'Not a form', detail);
}
