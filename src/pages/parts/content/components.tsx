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

/** A number with its name, within `<dl class="stats">`. */
export function Stat({ name, children }: { readonly name: string; readonly children: ComponentChildren }): VNode {
  return (
    <div class="stat">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** A fact with its name, within `<dl class="facts">`. */
export function Fact({ name, children }: { readonly name: string; readonly children: ComponentChildren }): VNode {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
