import type { ComponentChildren, VNode } from 'preact';
import { ERROR_CODES } from '../../../errors.js';

/** @returns the id of an error code in the reference; undefined for any other code */
export const errorId = (code: string): string | undefined => (code in ERROR_CODES ? `error-${code}` : undefined);

/** The paths of pages and documents that texts name and that anybody can open in a browser. */
export const OPENABLE_PATH = /^\/(docs|settings|status|revoke-leaked-key|openapi(-leaked-keys)?\.(yaml|json))$/;

interface HeadingProps {
  readonly level: 2 | 3 | 4;
  readonly id: string;
  /** The heading in plain text. */
  readonly text: string;
  /** Shown instead of the text. */
  readonly children?: ComponentChildren;
}

/** A heading with a link to it. The link is outside the heading, whose accessible name would otherwise contain it. */
export function Heading({ level, id, text, children = text }: HeadingProps): VNode {
  const Tag = `h${level}` as const;
  return (
    <div class="heading">
      <Tag id={id}>{children}</Tag>
      <HeadingLink id={id} text={text} />
    </div>
  );
}

/** The link to a heading, which appears when the pointer or the focus is on it. */
export function HeadingLink({ id, text }: { readonly id: string; readonly text: string }): VNode {
  return (
    <a class="anchor" href={`#${id}`} aria-label={`Link to ${text}`}>
      #
    </a>
  );
}
