import type { VNode } from 'preact';
import { DIRECTION_CONTROLS } from '../../platform/text/plain-text.js';

/** Formats a whole number with thousands separators: `10,000`. */
export function formatNumber(value: number): string {
  return value.toLocaleString('en-US');
}

/** A time in UTC, to the minute. @param at - in RFC 3339 and UTC */
export function Time({ at }: { readonly at: string }): VNode {
  return <time dateTime={at}>{`${at.slice(0, 10)} ${at.slice(11, 16)} UTC`}</time>;
}

/**
 * Text that a user has chosen, such as a label. A name in Hebrew or Arabic reads from the right without turning the text
 * around it.
 */
export function UserText({ text }: { readonly text: string }): VNode {
  return <bdi>{harmless(text)}</bdi>;
}

/** The same for an attribute, which takes no element. */
export function isolated(text: string): string {
  return `\u2068${harmless(text)}\u2069`;
}

/** Names written in SQL are unchecked, and a control character could end the isolation. */
function harmless(text: string): string {
  return text.replaceAll(DIRECTION_CONTROLS, '\uFFFD');
}
