import type { ComponentProps, VNode } from 'preact';
import { RECENT_MINUTES } from '../../accounts/sessions.js';
import type { PageContext } from '../parts/context.js';
import { Notice } from '../parts/content/components.js';
import { readCookie, setCookie } from '../parts/web/cookies.js';
import { leaveNotice, seeOther, type Interruption } from '../parts/web/return-to.js';

/** What has been done, in the words of the page that confirms it. */
const CONFIRMATIONS = {
  revoked: 'This key has been revoked. Requests that use it will fail immediately.',
  revoked_eventually: 'This key has been revoked. Requests that use it will fail within moments.',
  already_revoked: 'This key was already revoked.',
  already_ended: 'This key has already ended.',
  unchanged: 'No changes were made.',
  label_changed: 'The label has been changed.',
  expiry_changed: 'The expiry has been changed. It applies to the next request.',
  expiry_changed_eventually: 'The expiry has been changed. It applies within moments.',
  passkey_added: 'The passkey has been added. Next time, choose “Sign in with a passkey”.',
  passkey_removed:
    'The passkey has been removed and can no longer sign in. Delete it from your device or password manager too.',
  session_ended: 'The session has ended.',
  other_sessions_ended: 'All your other sessions have ended.',
  all_sessions_ended: 'All your sessions have ended.',
} as const;

/** Something that a page confirms once. */
export type Confirmation = keyof typeof CONFIRMATIONS;

/**
 * Redirects to a page that confirms what has been done. It is shown once, so that the page can be reloaded and visited again.
 *
 * @param address - our own
 * @example redirectAndConfirm(ctx, '/settings/sessions', 'session_ended');
 */
export function redirectAndConfirm(ctx: PageContext, address: string, confirmation: Confirmation): void {
  leaveNotice(ctx, confirmation);
  seeOther(ctx, address);
}

const INTERRUPTIONS: Readonly<Record<Interruption, string>> = {
  'signed-out': 'Your session had ended.',
  'sign-in-too-old': `You signed in more than ${RECENT_MINUTES} minutes ago, so we asked you to sign in again.`,
};

/** What the person did before this page: the confirmation of it, or why it was not done. It is shown once. */
export function notices(ctx: PageContext): VNode<ComponentProps<typeof Notice>> | undefined {
  const name = readCookie(ctx, 'notice');
  if (name === undefined) return undefined;
  setCookie(ctx, 'notice', undefined);
  if (isKeyOf(CONFIRMATIONS, name)) {
    return (
      <Notice tone="ok" role="status">
        {CONFIRMATIONS[name]}
      </Notice>
    );
  }
  if (!isKeyOf(INTERRUPTIONS, name)) return undefined;
  return (
    <Notice tone="warning" role="alert">
      {INTERRUPTIONS[name]} <strong>Nothing was changed.</strong> Check the form and submit it again.
    </Notice>
  );
}

/** The browser may change its cookies. */
function isKeyOf<T extends object>(texts: T, name: string): name is Extract<keyof T, string> {
  return Object.hasOwn(texts, name);
}
