import { createContext, type VNode } from 'preact';
import { useContext } from 'preact/hooks';
import { DIRECTION_CONTROLS } from '../../../platform/text/plain-text.js';
import type { PageFrame } from '../context.js';
import { formatRelative } from '../../../platform/time/relative-time.js';

/** A time in UTC, to the minute. @param at - in RFC 3339 and UTC */
export function Time({ at }: { readonly at: string }): VNode {
  return <time dateTime={at}>{formatTime(at)}</time>;
}

/** The same for an attribute or an option, which take no element. */
export function formatTime(at: string): string {
  return `${at.slice(0, 10)} ${at.slice(11, 16)} UTC`;
}

/**
 * How long ago a time was, or how far ahead it is. The exact time is shown on hover, and read by screen readers.
 *
 * @param at - in RFC 3339 and UTC; null for never
 */
export function RelativeTime({ at }: { readonly at: string | null }): VNode {
  if (at === null) return <>Never</>;
  const exact = formatTime(at);
  return (
    <time dateTime={at} title={exact}>
      {formatRelative(at, Date.now())}
      <span class="visually-hidden">, {exact}</span>
    </time>
  );
}

/** The same with the exact time beside it. */
export function BothTimes({ at }: { readonly at: string | null }): VNode {
  if (at === null) return <>Never</>;
  return (
    <>
      <RelativeTime at={at} />{' '}
      <span class="muted">
        (<Time at={at} />)
      </span>
    </>
  );
}

/**
 * Text that a user has chosen, such as a label. A name in Hebrew or Arabic reads from the right without turning the
 * text around it.
 */
export function UserText({ text }: { readonly text: string }): VNode {
  return <bdi>{harmless(text)}</bdi>;
}

/** The same for an attribute, which takes no element. */
export function isolated(text: string): string {
  return `\u2068${harmless(text)}\u2069`;
}

/** The same for a text that stands alone. Names from SQL are unchecked: a control character could end an isolation. */
export function harmless(text: string): string {
  return text.replaceAll(DIRECTION_CONTROLS, '\uFFFD');
}

/** What every page knows of its deployment. */
export const Deployment = createContext<Pick<PageFrame, 'operatorContact' | 'publicUrl'>>({
  operatorContact: undefined,
  publicUrl: () => '',
});

const WORDS = 'the operator of this service';

/**
 * "The operator of this service", as a link to the operator's contact if the deployment has one.
 *
 * @example <p>Ask <Operator /> for a new link.</p>
 */
export function Operator({ showsAddress = false }: { readonly showsAddress?: boolean }): VNode {
  const { operatorContact: contact } = useContext(Deployment);
  if (contact === undefined) return <>{WORDS}</>;
  const link = <a href={contact}>{showsAddress ? addressOf(contact) : WORDS}</a>;
  return showsAddress ? (
    <>
      {WORDS} at {link}
    </>
  ) : (
    link
  );
}

/** @returns a contact as people write it, without the scheme and what follows the address */
function addressOf(contact: string): string {
  return contact.replace(/^mailto:([^?]+).*$/, '$1').replace(/^https?:\/\/|\/$/g, '');
}
