import type { ComponentChildren } from 'preact';
import { Notice } from '../parts/content/components.js';
import { Operator, UserText } from '../parts/content/values.js';
import { signedInPage, type SignedInPageOptions } from '../parts/frame/signed-in-page.js';
import type { SettingsContext } from './guards.js';

/** The pages of the settings, as their navigation lists them. */
export const TABS = [
  { id: 'overview', path: '/settings', label: 'Overview' },
  { id: 'keys', path: '/settings/keys', label: 'Keys' },
  { id: 'usage', path: '/settings/usage', label: 'Usage' },
  { id: 'events', path: '/settings/events', label: 'Events' },
  { id: 'passkeys', path: '/settings/passkeys', label: 'Passkeys' },
  { id: 'sessions', path: '/settings/sessions', label: 'Sessions' },
] as const;

/** The guide to the settings. It has a heading for each page but the first. */
const GUIDE = '/docs/guides/developer-settings';

/**
 * Answers with a page of the settings: the project, the navigation, and the body under its heading.
 *
 * @example settingsPage(ctx, { title: 'Sessions', tab: 'sessions' }, <SessionList sessions={sessions} />);
 */
export function settingsPage(
  ctx: SettingsContext,
  options: SignedInPageOptions<(typeof TABS)[number]['id']>,
  body: ComponentChildren,
): void {
  const { projectName, suspendedAt } = ctx.state.session;
  const warning = suspendedAt !== null && (
    <Notice tone="danger">
      <strong>Your account is suspended.</strong> Your keys are rejected, and you can view the settings but not change
      them. Contact <Operator />.
    </Notice>
  );
  signedInPage(
    ctx,
    { name: 'Settings', tabs: TABS, owner: <UserText text={projectName} />, warning },
    { ...options, section: 'settings' },
    <>
      {body}
      <p class="settings-help small">
        <a href={options.tab === 'overview' ? GUIDE : `${GUIDE}#${options.tab}`}>
          Guide to {options.tab === 'overview' ? 'these settings' : options.tab}
        </a>
      </p>
    </>,
  );
}
