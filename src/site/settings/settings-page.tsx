import type { ComponentChildren, VNode } from 'preact';
import { Notice } from '../layout/components.js';
import { page } from '../layout/page.js';
import { UserText } from '../layout/values.js';
import type { SettingsContext } from './guards.js';

/** The pages of the settings, as their navigation lists them, and the link of each to the guide. */
export const TABS = [
  { id: 'overview', path: '/settings', label: 'Overview', help: 'About the settings' },
  { id: 'keys', path: '/settings/keys', label: 'Keys', help: 'About keys' },
  { id: 'usage', path: '/settings/usage', label: 'Usage', help: 'About usage' },
  { id: 'events', path: '/settings/events', label: 'Events', help: 'About events' },
  { id: 'sessions', path: '/settings/sessions', label: 'Sessions', help: 'About sessions' },
] as const;

/** The guide to the settings. It has a heading for each page but the first. */
const GUIDE = '/docs/guides/developer-settings';

/** A page of the settings. */
export type Tab = (typeof TABS)[number]['id'];

/** What a page of the settings is called, and where it belongs. */
interface SettingsPageOptions {
  /** The heading. */
  readonly title: string;
  readonly tab: Tab;
  /** 200 where it is left out. */
  readonly status?: number;
}

/**
 * Answers with a page of the settings: the project, the navigation, and the body under its heading.
 *
 * @example settingsPage(ctx, { title: 'Sessions', tab: 'sessions' }, <SessionList sessions={sessions} />);
 */
export function settingsPage(
  ctx: SettingsContext,
  { title, tab, status }: SettingsPageOptions,
  body: ComponentChildren,
) {
  const { projectName, suspendedAt } = ctx.state.session;
  page(
    ctx,
    { title, section: 'settings', ...(status !== undefined && { status }) },
    <div class="container-wide settings">
      <header class="settings-header">
        <p class="settings-project">
          <UserText text={projectName} />
        </p>
        <form method="post" action="/sign-out">
          <button class="button button-quiet" type="submit">
            Sign out
          </button>
        </form>
      </header>
      <SettingsNavigation tab={tab} />
      {suspendedAt !== null && <Suspended />}
      <h1>{title}</h1>
      {body}
      <Help tab={tab} />
    </div>,
  );
}

function SettingsNavigation({ tab }: { readonly tab: Tab }): VNode {
  return (
    <nav class="settings-nav" aria-label="Settings">
      <ul>
        {TABS.map(({ id, path, label }) => (
          <li key={id}>
            <a href={path} aria-current={id === tab ? 'page' : undefined}>
              {label}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function Help({ tab }: { readonly tab: Tab }): VNode {
  const { help } = TABS.find(({ id }) => id === tab) ?? TABS[0];
  return (
    <p class="settings-help small">
      <a href={tab === 'overview' ? GUIDE : `${GUIDE}#${tab}`}>{help}</a>
    </p>
  );
}

function Suspended(): VNode {
  return (
    <Notice tone="danger">
      <p>
        <strong>Your account is suspended.</strong> Your keys are rejected, and you can view the settings but not change
        them. Contact the operator of this service.
      </p>
    </Notice>
  );
}
