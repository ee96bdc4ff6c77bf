import type { ComponentChildren } from 'preact';
import { Notice } from '../layout/components.js';
import { Operator } from '../layout/operator.js';
import { answerPage } from '../layout/page.js';
import { UserText } from '../layout/values.js';
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

/** What a page of the settings is called, and where it belongs. */
interface SettingsPageOptions {
  /** The heading. */
  readonly title: string;
  readonly tab: Tab;
  /** 200 where it is left out. */
  readonly status?: number | undefined;
  /** For the answer to a form: the address that takes its place in the history of the browser. */
  readonly address?: string | undefined;
  /** The page above this one. */
  readonly trail?: { readonly path: string; readonly label: string };
}

/**
 * Answers with a page of the settings: the project, the navigation, and the body under its heading.
 *
 * @example settingsPage(ctx, { title: 'Sessions', tab: 'sessions' }, <SessionList sessions={sessions} />);
 */
export function settingsPage(
  ctx: SettingsContext,
  { tab, trail, ...options }: SettingsPageOptions,
  body: ComponentChildren,
) {
  const { title, status = 200 } = options;
  const { projectName, suspendedAt } = ctx.state.session;
  const notice = notices(ctx);
  answerPage(
    ctx,
    { ...options, hasErrors: status >= 400 || notice?.props.role === 'alert', section: 'settings' },
    <div class="container-wide">
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
      <nav class="settings-nav" aria-label="Settings">
        <ul>
          {TABS.map(({ id, path, label }) => (
            <li key={id}>
              <a href={path} data-text={label} aria-current={id === tab ? 'page' : undefined}>
                {label}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      {suspendedAt !== null && (
        <Notice tone="danger">
          <strong>Your account is suspended.</strong> Your keys are rejected, and you can view the settings but not
          change them. Contact <Operator />.
        </Notice>
      )}
      {notice}
      {trail !== undefined && (
        <p class="trail">
          <a href={trail.path}>{trail.label}</a>
        </p>
      )}
      <h1>{title}</h1>
      {body}
      <p class="settings-help small">
        <a href={tab === 'overview' ? GUIDE : `${GUIDE}#${tab}`}>
          Guide to {tab === 'overview' ? 'these settings' : tab}
        </a>
      </p>
    </div>,
  );
}
