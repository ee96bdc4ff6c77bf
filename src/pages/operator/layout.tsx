import { hostname } from 'node:os';
import type { ComponentChildren, VNode } from 'preact';
import { Brand, Document } from '../parts/frame/document.js';
import type { LayoutProps, PageContext, PageFrame } from '../parts/context.js';
import type { OperatorParts } from './context.js';
import { KeyPath } from '../parts/keys.js';
import { signedInPage, type SignedInPageOptions } from '../parts/frame/signed-in-page.js';

/** The pages, as their navigation lists them. */
export const TABS = [
  { id: 'status', path: '/', label: 'Status' },
  { id: 'developers', path: '/developers', label: 'Developers' },
  { id: 'failed-keys', path: '/failed-keys', label: 'Failed keys' },
  { id: 'settings', path: '/settings', label: 'Settings' },
  { id: 'guides', path: '/guides', label: 'Guides' },
] as const;

/** @returns the address of the page of a key, for operators */
export function operatorKeyPath(prefix: string): string {
  return `/keys/${prefix}`;
}

/** @returns the frame of every page for operators */
export function operatorFrame({ files, url, config, command, publicUrl }: OperatorParts): PageFrame {
  const docs = (): string | undefined => (config.site ? `${publicUrl()}/docs` : undefined);
  // Browsers reach these pages by several addresses, such as a forwarded port. The server has refused any other name.
  const formOrigin = ({ host }: PageContext): string => `http://${host}`;
  return { files, publicUrl: url, formOrigin, docs, operatorContact: undefined, command, Layout: OperatorLayout };
}

function OperatorLayout(props: LayoutProps): VNode {
  return <Document {...props} name="Catalog operator" header={<Brand label="Catalog operator" />} />;
}

/**
 * Answers with a page behind sign-in: the navigation, and the body under its heading.
 *
 * @example operatorPage(ctx, { title: 'Settings', tab: 'settings' }, <SettingTable config={config} />);
 */
export function operatorPage(
  ctx: PageContext,
  options: SignedInPageOptions<(typeof TABS)[number]['id']>,
  body: ComponentChildren,
): void {
  signedInPage(
    ctx,
    { name: 'Operator', tabs: TABS, owner: hostname() },
    options,
    <KeyPath.Provider value={operatorKeyPath}>{body}</KeyPath.Provider>,
  );
}
