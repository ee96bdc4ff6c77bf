import type { ComponentProps, VNode } from 'preact';
import { RECENT_MINUTES } from '../../../accounts/sessions.js';
import type { PageContext } from '../context.js';
import { Notice } from '../content/components.js';
import { seeOther } from '../web/addresses.js';
import { readCookie, setCookie } from '../web/cookies.js';

/** How long a notice waits for its page, in seconds. */
const WAITING_SECONDS = 60;

/** The texts that confirm an action. */
const CONFIRMATIONS = {
  revoked: 'This key has been revoked. Requests with it now fail.',
  already_revoked: 'This key was already revoked.',
  already_ended: 'This key has already ended.',
  unchanged: 'No changes were made.',
  label_changed: 'The label has been changed.',
  expiry_changed: 'The expiry has been changed.',
  passkey_added: 'The passkey has been added. Next time, choose “Sign in with a passkey”.',
  passkey_removed:
    'The passkey has been removed and can no longer sign in. Delete it from your device or password manager too.',
  signed_in_already: 'This sign-in link no longer works, but you are already signed in.',
  session_ended: 'The browser is signed out.',
  other_sessions_ended: 'All your other browsers are signed out.',
  suspended: 'The developer is suspended. Their keys are refused from now on.',
  reinstated: 'The developer is reinstated. Their keys are accepted again.',
  plan_changed: 'The plan of new keys has been changed.',
  plans_changed: 'The plan of new keys and of all active keys has been changed.',
} as const;

/** Something that a page confirms once. */
export type Confirmation = keyof typeof CONFIRMATIONS;

/**
 * Redirects to a page with a confirmation. It is shown once, so that the page can be reloaded and revisited.
 *
 * @param address - our own
 * @example redirectAndConfirm(ctx, '/settings/sessions', 'session_ended');
 */
export function redirectAndConfirm(ctx: PageContext, address: string, confirmation: Confirmation): void {
  leaveNotice(ctx, address, confirmation);
  seeOther(ctx, address);
}

/** Why a form was not processed: the session had ended, or the sign-in was too long ago. */
const INTERRUPTED = {
  'signed-out': 'Your session had ended.',
  'sign-in-too-old': `You signed in more than ${RECENT_MINUTES} minutes ago, so we asked you to sign in again.`,
} as const;

export type Interruption = keyof typeof INTERRUPTED;

/** Whether a form waits for a sign-in. */
export function isInterrupted(ctx: PageContext): boolean {
  return Object.keys(INTERRUPTED).some((reason) => readCookie(ctx, 'notice')?.startsWith(`${reason}/`));
}

/** Leaves a notice that the page at an address shows once. Another page may load before it, in another tab. */
export function leaveNotice(ctx: PageContext, address: string, name: string, seconds = WAITING_SECONDS): void {
  const [path = ''] = address.split('?');
  setCookie(ctx, 'notice', name + path, seconds);
}

/** The confirmation of the last action, or the reason why it was not done. It is shown once. */
export function takeNotice(ctx: PageContext): VNode<ComponentProps<typeof Notice>> | undefined {
  const name = takeNoticeName(ctx);
  if (isKeyOf(CONFIRMATIONS, name)) {
    return (
      <Notice tone="ok" role="status">
        {CONFIRMATIONS[name]}
      </Notice>
    );
  }
  if (!isKeyOf(INTERRUPTED, name)) return undefined;
  return (
    <Notice tone="warning" role="alert">
      {INTERRUPTED[name]} <strong>Nothing was changed.</strong> Check the form and submit it again.
    </Notice>
  );
}

/** @returns the name of the notice for the page of this request, once; empty without one */
function takeNoticeName(ctx: PageContext): string {
  const [, name = '', path] = /^([a-z_-]+)(\/.*)$/.exec(readCookie(ctx, 'notice') ?? '') ?? [];
  if (path !== ctx.path) return '';
  setCookie(ctx, 'notice', undefined);
  return name;
}

/** The browser may change its cookies. */
function isKeyOf<T extends object>(texts: T, name: string): name is Extract<keyof T, string> {
  return Object.hasOwn(texts, name);
}
