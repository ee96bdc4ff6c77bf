import type { ComponentChildren, VNode } from 'preact';
import { highlight, type Language } from './highlight.js';

interface CodeBlockProps {
  /** What the block holds, for the line above it and for screen readers: `curl`, `Response`. */
  readonly label: string;
  readonly code: string;
  /** Highlights the code. */
  readonly language?: Language | undefined;
  /** A key, which is shown once: it wraps, so that all of it is seen. */
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

/** How good or bad something is, which decides the colour of a notice or a badge. */
export type Tone = 'info' | 'ok' | 'warning' | 'danger';

interface NoticeProps {
  readonly tone: Tone;
  /** Whether screen readers announce it: the outcome of what somebody has just done, or what keeps them from it. */
  readonly role?: 'status' | 'alert';
  readonly children: ComponentChildren;
}

/** A paragraph that stands apart from the text. An alert has the focus, so that it is read first. */
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
  /** Where it leads. Without an address, it sends its form. */
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

/** Contents by their names. Those that are undefined or false are left out. */
export type Named = Readonly<Record<string, ComponentChildren>>;

/** Numbers, large. */
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

/** What is known about one thing. */
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
