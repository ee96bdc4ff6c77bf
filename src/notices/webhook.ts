import { createHmac } from 'node:crypto';
import type { Notice } from './outbox.js';

/** Where notices are sent. */
export interface Webhook {
  /** It may contain a token, and is never printed. */
  readonly url: string;
  /** The key of the signatures. */
  readonly secret: Buffer;
}

/** How an attempt ended. A reason names neither the address nor anything that the receiver has sent. */
export type Delivery =
  | { readonly kind: 'delivered'; readonly status: number }
  | { readonly kind: 'failed'; readonly reason: string };

/** Bound on an attempt, in milliseconds. */
const ATTEMPT_MS = 10_000;

/** @returns the id of a notice as its receiver sees it, in `Webhook-Id` */
export function messageId({ id }: Pick<Notice, 'id'>): string {
  return `msg_${id}`;
}

/**
 * Sends a notice as Standard Webhooks (https://www.standardwebhooks.com) describes it. The receiver accepts it by a
 * status from 200 to 299. Redirects are not followed, and the body of the response is not read.
 *
 * @param options - `stopping` aborts the attempt, and `timeoutMs` bounds it
 */
export async function sendNotice(
  { url, secret }: Webhook,
  notice: Notice,
  { stopping, timeoutMs = ATTEMPT_MS }: { readonly stopping?: AbortSignal; readonly timeoutMs?: number } = {},
): Promise<Delivery> {
  const timeout = AbortSignal.timeout(timeoutMs);
  const { type, occurredAt, data } = notice;
  const body = JSON.stringify({ type, timestamp: occurredAt, data });
  const id = messageId(notice);
  const timestamp = String(Math.floor(Date.now() / 1000));
  try {
    const {
      status,
      ok,
      body: unread,
    } = await fetch(url, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        'Webhook-Id': id,
        'Webhook-Timestamp': timestamp,
        'Webhook-Signature': `v1,${createHmac('sha256', secret).update(`${id}.${timestamp}.${body}`).digest('base64')}`,
      },
      body,
      redirect: 'manual',
      signal: stopping === undefined ? timeout : AbortSignal.any([timeout, stopping]),
    });
    await unread?.cancel();
    return ok ? { kind: 'delivered', status } : { kind: 'failed', reason: `status ${status}` };
  } catch (error) {
    if (timeout.aborted) return { kind: 'failed', reason: `no response within ${timeoutMs / 1000} s` };
    const { cause, name } = error as {
      readonly cause?: { readonly code?: unknown; readonly message?: unknown; readonly name?: unknown };
      readonly name: string;
    };
    // Its code depends on the version of Node.js.
    if (cause?.name === 'HTTPParserError') return { kind: 'failed', reason: 'the response is not HTTP' };
    if (cause?.message === 'bad port') return { kind: 'failed', reason: 'fetch refuses this port' };
    return { kind: 'failed', reason: typeof cause?.code === 'string' ? cause.code : name };
  }
}
