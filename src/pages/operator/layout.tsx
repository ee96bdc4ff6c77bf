import { hostname } from 'node:os';
import type { ComponentChildren, VNode } from 'preact';
import { Brand, Document } from '../parts/frame/document.js';
import type { LayoutProps } from '../parts/context.js';
import { answerPage } from '../parts/frame/page.js';
import { KeyPath } from '../parts/keys/key-name.js';
import { SignedInFrame, type SignedInPageOptions } from '../parts/frame/signed-in-frame.js';
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

/**
 * Answers with a page behind sign-in: the navigation, and the body under its heading.
 *
 * @example operatorPage(ctx, { title: 'Settings', tab: 'settings' }, <SettingTable config={config} />);
 */
export function operatorPage(
  ctx: OperatorContext,
  { tab, trail, ...options }: SignedInPageOptions<(typeof TABS)[number]['id']>,
  body: ComponentChildren,
): void {
  const { session } = ctx.state;
  // Another page may load first, in another tab.
  const confirmation = session.confirmation?.address === ctx.path ? session.confirmation : undefined;
  if (confirmation !== undefined) session.confirmation = undefined;
  answerPage(
    ctx,
    { ...options, hasErrors: (options.status ?? 200) >= 400 },
    <SignedInFrame
      owner={hostname()}
      name="Operator"
      tabs={TABS}
      tab={tab}
      trail={trail}
      title={options.title}
      notices={confirmation?.notice}
    >
      <KeyPath.Provider value={operatorKeyPath}>{body}</KeyPath.Provider>
    </SignedInFrame>,
  );
}
