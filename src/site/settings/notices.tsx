import type { VNode } from 'preact';
import type { PageContext } from '../context.js';
import { Notice } from '../layout/components.js';
import { addressOf } from '../delivery/page-address.js';
import { readCookie, setCookie } from '../sign-in/cookies.js';
import { interruptionOf, seeOther, type Interruption } from '../sign-in/return-to.js';

/** What has been done, in the words of the page that confirms it. */
const CONFIRMATIONS = {
  revoked: 'This key has been revoked. Requests that use it now fail.',
  revoked_eventually: 'This key has been revoked. Requests that use it will fail within moments.',
  already_revoked: 'This key was already revoked.',
  label_changed: 'The label has been changed.',
  expiry_changed: 'The expiry has been changed. It applies to the next request.',
  expiry_changed_eventually: 'The expiry has been changed. It applies within moments.',
  passkey_added: 'The passkey has been added. Next time, choose “Sign in with a passkey”.',
  passkey_removed:
    'The passkey has been removed and can no longer sign in. Delete it from your device or password manager too.',
  session_ended: 'The session has ended.',
  all_sessions_ended: 'All your sessions have ended.',
} as const;

/** Something that a page confirms once. */
export type Confirmation = keyof typeof CONFIRMATIONS;

/** How long a confirmation waits for its page, in seconds. */
const WAITING_SECONDS = 60;

/**
 * Redirects to a page that confirms what has been done. It is shown once, so that the page can be reloaded and visited again.
 *
 * @param address - our own
 * @example redirectAndConfirm(ctx, '/settings/sessions', 'session_ended');
 */
export function redirectAndConfirm(ctx: PageContext, address: string, confirmation: Confirmation): void {
  setCookie(ctx, 'confirmation', confirmation, WAITING_SECONDS);
  seeOther(ctx, address);
}

const INTERRUPTIONS: Readonly<Record<Interruption, string>> = {
  'signed-out': 'You had been signed out.',
  'sign-in-too-old': 'Your sign-in was too old for this.',
};

/** What the person did before this page: the confirmation of it, or why it was not done. */
export function notices(ctx: PageContext): VNode {
  const confirmation = takeConfirmation(ctx);
  const interruption = ctx.method === 'GET' ? interruptionOf(addressOf(ctx)) : undefined;
  return (
    <>
      {confirmation !== undefined && (
        <Notice tone="ok" role="status">
          {CONFIRMATIONS[confirmation]}
        </Notice>
      )}
      {interruption !== undefined && (
        <Notice tone="warning" role="alert">
          {INTERRUPTIONS[interruption]} <strong>Nothing was changed.</strong> Check the form and send it again.
        </Notice>
      )}
    </>
  );
}

function takeConfirmation(ctx: PageContext): Confirmation | undefined {
  const value = readCookie(ctx, 'confirmation');
  if (value === undefined) return undefined;
  setCookie(ctx, 'confirmation', undefined);
  return Object.hasOwn(CONFIRMATIONS, value) ? (value as Confirmation) : undefined;
}
