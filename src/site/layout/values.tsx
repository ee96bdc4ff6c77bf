import type { VNode } from 'preact';
import { DIRECTION_CONTROLS } from '../../platform/text/plain-text.js';

/** Formats a whole number with thousands separators: `10,000`. */
export function formatNumber(value: number): string {
  return value.toLocaleString('en-US');
}

/** A time in UTC, to the minute. @param at - in RFC 3339 and UTC */
export function Time({ at }: { readonly at: string }): VNode {
  return <time dateTime={at}>{formatTime(at)}</time>;
}

/** The same for an attribute or an option, which take no element. */
export function formatTime(at: string): string {
  return `${at.slice(0, 10)} ${at.slice(11, 16)} UTC`;
}

/** The units of a relative time, the longest first, each with the least number of seconds that it is used for. */
const UNITS = [
  { unit: 'year', seconds: 31_557_600, from: 2 * 31_557_600 },
  { unit: 'month', seconds: 2_629_800, from: 100 * 86_400 },
  { unit: 'day', seconds: 86_400, from: 47.5 * 3_600 },
  { unit: 'hour', seconds: 3_600, from: 59.5 * 60 },
  { unit: 'minute', seconds: 60, from: 60 },
] as const;

const RELATIVE = new Intl.RelativeTimeFormat('en-US');

interface RelativeTimeProps {
  /** In RFC 3339 and UTC; null for never. */
  readonly at: string | null;
  /** In milliseconds since 1970. */
  readonly now?: number;
}

/** How long ago a time was, or how far ahead it is. The exact time is shown on hover, and read by screen readers. */
export function RelativeTime({ at, now = Date.now() }: RelativeTimeProps): VNode {
  if (at === null) return <>Never</>;
  const exact = formatTime(at);
  return (
    <time dateTime={at} title={exact}>
      {formatRelative((Date.parse(at) - now) / 1_000)}
      <span class="visually-hidden">, {exact}</span>
    </time>
  );
}

/** @param seconds - from now; negative for the past */
function formatRelative(seconds: number): string {
  const found = UNITS.find(({ from }) => Math.abs(seconds) >= from);
  if (found === undefined) return seconds > 0 ? 'in less than a minute' : 'just now';
  return RELATIVE.format(Math.round(seconds / found.seconds), found.unit);
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

/** The same for a text that stands alone. Names written in SQL are unchecked, and a control character could end an isolation. */
export function harmless(text: string): string {
  return text.replaceAll(DIRECTION_CONTROLS, '\uFFFD');
}
