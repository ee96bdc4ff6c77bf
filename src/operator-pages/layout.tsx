import { hostname } from 'node:os';
import type { ComponentChildren, VNode } from 'preact';
import { Brand, Document } from '../site/layout/document.js';
import type { LayoutProps } from '../site/layout/layout.js';
import { answerPage } from '../site/layout/page.js';
import { KeyPath } from '../site/settings/key-name.js';
import type { OperatorContext } from './context.js';

/** The pages, as their navigation lists them. */
const TABS = [
  { id: 'status', path: '/', label: 'Status' },
  { id: 'developers', path: '/developers', label: 'Developers' },
  { id: 'failed-keys', path: '/failed-keys', label: 'Failed keys' },
  { id: 'settings', path: '/settings', label: 'Settings' },
] as const;

/** @returns the address of the page of a key, for operators */
export function operatorKeyPath(prefix: string): string {
  return `/keys/${prefix}`;
}

/** The frame of every page for operators. */
export function OperatorLayout(props: LayoutProps): VNode {
  return <Document {...props} name="Catalog operator" header={<Brand label="Catalog operator" />} />;
}

/** What a page is called, and where it belongs. */
interface OperatorPageOptions {
  /** The heading, and the title of the window. */
  readonly title: string;
  readonly tab: (typeof TABS)[number]['id'];
  /** 200 where it is left out. */
  readonly status?: number | undefined;
  /** For the answer to a form: the address that takes its place in the history of the browser. */
  readonly address?: string | undefined;
  /** The page above this one. */
  readonly trail?: { readonly path: string; readonly label: string };
}

/**
 * Answers with a page behind sign-in: the navigation, and the body under its heading.
 *
 * @example operatorPage(ctx, { title: 'Settings', tab: 'settings' }, <SettingTable config={config} />);
 */
export function operatorPage(
  ctx: OperatorContext,
  { tab, trail, ...options }: OperatorPageOptions,
  body: ComponentChildren,
): void {
  const { session } = ctx.state;
  // Another page may load first, in another tab.
  const confirmation = session.confirmation?.address === ctx.path ? session.confirmation : undefined;
  if (confirmation !== undefined) session.confirmation = undefined;
  answerPage(
    ctx,
    { ...options, hasErrors: (options.status ?? 200) >= 400 },
    <div class="container-wide">
      <header class="settings-header">
        <p class="settings-project">{hostname()}</p>
        <form method="post" action="/sign-out">
          <button class="button button-quiet" type="submit">
            Sign out
          </button>
        </form>
      </header>
      <nav class="settings-nav" aria-label="Operator">
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
      {confirmation?.notice}
      {trail !== undefined && (
        <p class="trail">
          <a href={trail.path}>{trail.label}</a>
        </p>
      )}
      <h1>{options.title}</h1>
      <KeyPath.Provider value={operatorKeyPath}>{body}</KeyPath.Provider>
    </div>,
  );
}
