import type { VNode } from 'preact';

/**
 * The embeddings, overrides and isolates of the Unicode bidirectional algorithm. They turn the direction of what follows, also
 * beyond the text that holds them. A name with them can make a page read differently from what it says.
 */
const DIRECTION_CONTROLS = /[\u202A-\u202E\u2066-\u2069]/u;

/** Matches what a name or a label of one line may not hold. */
const UNPRINTABLE = /\p{Cc}|\p{Cs}|[\u2028\u2029]/u;

/** What to do about a name or a label that {@link isPlainText} refuses. */
export const NOT_PLAIN =
  'Leave out line ends and other control characters, such as those that turn the direction of text.';

/** @returns whether a name or a label that a person types may be shown as it is */
export function isPlainText(text: string): boolean {
  return !UNPRINTABLE.test(text) && !DIRECTION_CONTROLS.test(text);
}

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

/** The command line and SQL write names that no form has checked. A control could end the isolation. */
function harmless(text: string): string {
  return text.replaceAll(new RegExp(DIRECTION_CONTROLS, 'gu'), '\uFFFD');
}
