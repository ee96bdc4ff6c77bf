import { createContext, type ComponentChildren, type VNode } from 'preact';
import { useContext } from 'preact/hooks';
import { DIRECTION_CONTROLS } from '../../../platform/text/plain-text.js';
import { formatRelative } from '../../../platform/time/relative-time.js';
import type { PageFrame } from '../context.js';
import { highlight, type Language } from './highlight.js';

interface CodeBlockProps {
  /** The name of the block, for the line above it and for screen readers: `curl`, `Response`. */
  readonly label: string;
  readonly code: string;
  /** Highlights the code. */
  readonly language?: Language | undefined;
  /** For a key, which is shown once: it wraps, so that all of it is visible. */
  readonly isSecret?: boolean;
}

/** A block of code. The script gives it a button that copies it. */
export function CodeBlock({ label, code, language, isSecret = false }: CodeBlockProps): VNode {
  return (
    <figure class={isSecret ? 'code-block secret' : 'code-block'}>
      <figcaption>
        <span>{label}</span>
        <button type="button" class="copy-button scripted" data-copy>
          Copy
          <span class="visually-hidden">: {label}</span>
        </button>
      </figcaption>
      <pre tabIndex={0} aria-label={label} role="group">
        {language === undefined ? (
          <code>{code}</code>
        ) : (
          <code dangerouslySetInnerHTML={{ __html: highlight(code, language) }} />
        )}
      </pre>
    </figure>
  );
}

/** The severity of a notice or a badge, which decides its colour. */
export type Tone = 'info' | 'ok' | 'warning' | 'danger';

interface NoticeProps {
  readonly tone: Tone;
  /** Makes screen readers announce it: `status` for the outcome of an action, `alert` for an obstacle to it. */
  readonly role?: 'status' | 'alert';
  readonly children: ComponentChildren;
}

/** A highlighted paragraph. An alert has the focus, so that it is read first. */
export function Notice({ tone, role, children }: NoticeProps): VNode {
  return (
    <p class={`notice tone-${tone}`} role={role} {...(role === 'alert' && { tabIndex: -1, autofocus: true })}>
      {children}
    </p>
  );
}

/** A word in a coloured pill. */
export function Badge({ tone, children }: { readonly tone: Tone; readonly children: ComponentChildren }): VNode {
  return <span class={`badge tone-${tone}`}>{children}</span>;
}

interface ButtonProps {
  /** Where it leads. Without it, the button sends its form. */
  readonly href?: string;
  readonly tone?: 'primary' | 'danger' | 'quiet' | undefined;
  readonly label: string;
}

/** A button, or a link that looks like one. */
export function Button({ href, tone, label }: ButtonProps): VNode {
  const look = tone === undefined ? 'button' : `button button-${tone}`;
  return href === undefined ? (
    <button class={look} type="submit">
      {label}
    </button>
  ) : (
    <a class={look} href={href}>
      {label}
    </a>
  );
}

/** Contents by their names. Undefined and false are left out. */
export type Named = Readonly<Record<string, ComponentChildren>>;

/** A row of headline figures. */
export function Stats({ stats }: { readonly stats: Named }): VNode {
  return (
    <dl class="stats">
      {Object.entries(stats).map(([name, number]) => (
        <div key={name} class="stat">
          <dt>{name}</dt>
          <dd>{number}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A list of labelled facts. */
export function Facts({ facts }: { readonly facts: Named }): VNode {
  return (
    <dl class="facts">
      {Object.entries(facts).map(
        ([name, fact]) =>
          fact !== undefined &&
          fact !== false && (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{fact}</dd>
            </div>
          ),
      )}
    </dl>
  );
}

/** A time in UTC, to the minute. @param at - in RFC 3339 and UTC */
export function Time({ at }: { readonly at: string }): VNode {
  return <time dateTime={at}>{formatTime(at)}</time>;
}

/** The same for an attribute or an option, which cannot contain an element. */
export function formatTime(at: string): string {
  return `${at.slice(0, 10)} ${at.slice(11, 16)} UTC`;
}

/**
 * How long ago a time was, or how far ahead it is. The exact time is shown on hover and after a touch, and read by
 * screen readers.
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

/** The same, followed by the exact time. */
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
 * Text chosen by a user, such as a label. A name in Hebrew or Arabic reads from the right without changing the
 * direction of the text around it.
 */
export function UserText({ text }: { readonly text: string }): VNode {
  return <bdi>{harmless(text)}</bdi>;
}

/** The same for an attribute, which cannot contain an element. */
export function isolated(text: string): string {
  return `\u2068${harmless(text)}\u2069`;
}

/** The same for a text that stands alone. Names from SQL are unchecked: a control character could end an isolation. */
export function harmless(text: string): string {
  return text.replaceAll(DIRECTION_CONTROLS, '\uFFFD');
}

/** The facts about the deployment that every page shows. */
export const Deployment = createContext<Pick<PageFrame, 'operatorContact' | 'command' | 'publicUrl' | 'docs'>>({
  operatorContact: undefined,
  command: 'catalog',
  publicUrl: () => '',
  docs: () => undefined,
});

/** A command of this installation, to be copied. @param args - without the name of the program */
export function CommandBlock({ args }: { readonly args: string }): VNode {
  return <CodeBlock label="Command" code={`${useContext(Deployment).command} ${args}`} />;
}

/**
 * Whom to write to: the operator's contact as a link, or "your administrator" where the deployment has no contact.
 *
 * @example <p>Ask <Operator /> for a new link.</p>
 */
export function Operator(): VNode {
  const { operatorContact: contact } = useContext(Deployment);
  return contact === undefined ? <>your administrator</> : <a href={contact}>{withoutScheme(contact)}</a>;
}

/** @returns a contact as people write it, without the scheme and the query */
export function withoutScheme(contact: string): string {
  return contact.replace(/^mailto:([^?]+).*$/, '$1').replace(/^https?:\/\/|\/$/g, '');
}
