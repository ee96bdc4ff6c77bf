import type { ComponentChildren, VNode } from 'preact';
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

/** A page of a navigation. */
interface TabLink {
  readonly id: string;
  readonly path: string;
  readonly label: string;
}

/** What a page behind sign-in is called, and where it belongs. */
export interface SignedInPageOptions<Id extends TabLink['id']> {
  /** The heading, and the title of the window. */
  readonly title: string;
  readonly tab: Id;
  /** 200 where it is left out. */
  readonly status?: number | undefined;
  /** For the answer to a form: the address that takes its place in the history of the browser. */
  readonly address?: string | undefined;
  /** The page above this one. */
  readonly trail?: { readonly path: string; readonly label: string } | undefined;
}

interface SignedInFrameProps extends Pick<SignedInPageOptions<string>, 'title' | 'tab' | 'trail'> {
  /** Whose pages they are. */
  readonly owner: ComponentChildren;
  /** The name of the navigation. */
  readonly name: string;
  readonly tabs: readonly TabLink[];
  /** Shown above the heading. */
  readonly notices: ComponentChildren;
  readonly children: ComponentChildren;
}

/** The frame of every page behind sign-in: whose it is, the way out, the navigation, and the body under its heading. */
export function SignedInFrame({ owner, name, tabs, tab, notices, trail, title, children }: SignedInFrameProps): VNode {
  return (
    <div class="container-wide">
      <header class="settings-header">
        <p class="settings-project">{owner}</p>
        <form method="post" action="/sign-out">
          <button class="button button-quiet" type="submit">
            Sign out
          </button>
        </form>
      </header>
      <nav class="settings-nav" aria-label={name}>
        <ul>
          {tabs.map(({ id, path, label }) => (
            <li key={id}>
              <a href={path} data-text={label} aria-current={id === tab ? 'page' : undefined}>
                {label}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      {notices}
      {trail !== undefined && (
        <p class="trail">
          <a href={trail.path}>{trail.label}</a>
        </p>
      )}
      <h1>{title}</h1>
      {children}
    </div>
  );
}

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
