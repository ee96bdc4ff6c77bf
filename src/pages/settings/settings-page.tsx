import type { ComponentChildren } from 'preact';
import { Notice } from '../parts/content/components.js';
import { Operator } from '../parts/content/operator.js';
import { answerPage } from '../parts/frame/page.js';
import { SignedInFrame, type SignedInPageOptions } from '../parts/frame/signed-in-frame.js';
import { UserText } from '../parts/content/values.js';
import type { SettingsContext } from './guards.js';
import { notices } from './notices.js';

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

/** A page of the settings. */
export type Tab = (typeof TABS)[number]['id'];

/**
 * Answers with a page of the settings: the project, the navigation, and the body under its heading.
 *
 * @example settingsPage(ctx, { title: 'Sessions', tab: 'sessions' }, <SessionList sessions={sessions} />);
 */
export function settingsPage(
  ctx: SettingsContext,
  { tab, trail, ...options }: SignedInPageOptions<Tab>,
  body: ComponentChildren,
) {
  const { title, status = 200 } = options;
  const { projectName, suspendedAt } = ctx.state.session;
  const notice = notices(ctx);
  answerPage(
    ctx,
    { ...options, hasErrors: status >= 400 || notice?.props.role === 'alert', section: 'settings' },
    <SignedInFrame
      owner={<UserText text={projectName} />}
      name="Settings"
      tabs={TABS}
      tab={tab}
      trail={trail}
      title={title}
      notices={
        <>
          {suspendedAt !== null && (
            <Notice tone="danger">
              <strong>Your account is suspended.</strong> Your keys are rejected, and you can view the settings but not
              change them. Contact <Operator />.
            </Notice>
          )}
          {notice}
        </>
      }
    >
      {body}
      <p class="settings-help small">
        <a href={tab === 'overview' ? GUIDE : `${GUIDE}#${tab}`}>
          Guide to {tab === 'overview' ? 'these settings' : tab}
        </a>
      </p>
    </SignedInFrame>,
  );
}
