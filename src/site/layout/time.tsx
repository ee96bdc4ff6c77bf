import type { VNode } from 'preact';

/** A time in UTC, to the minute. @param at - in RFC 3339, in UTC */
export function Time({ at }: { readonly at: string }): VNode {
  return <time dateTime={at}>{`${at.slice(0, 10)} ${at.slice(11, 16)} UTC`}</time>;
}
