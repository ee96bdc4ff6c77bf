import type { VNode } from 'preact';
import { DIRECTION_CONTROLS } from '../../platform/text/plain-text.js';

/**
 * Text that a user has chosen, such as a label. Its direction does not reach the text around it. So a name in Hebrew or
 * Arabic reads from the right, and leaves its neighbours where they are.
 */
export function UserText({ text }: { readonly text: string }): VNode {
  return <bdi>{harmless(text)}</bdi>;
}

/** The same for places that take no element: an attribute or an option of a list. */
export function isolated(text: string): string {
  return `\u2068${harmless(text)}\u2069`;
}

/** SQL and earlier versions wrote names that nothing had checked. A control could end the isolation. */
function harmless(text: string): string {
  return text.replaceAll(DIRECTION_CONTROLS, '\uFFFD');
}
