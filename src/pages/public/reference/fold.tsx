import type { ComponentChildren, VNode } from 'preact';
import { HeadingLink } from '../../parts/content/heading.js';

interface FoldProps {
  /** The id of the folded content. Browsers unfold it for a link that leads there. */
  readonly id?: string;
  /** The text of the link to it. */
  readonly text?: string;
  readonly summary: ComponentChildren;
  readonly children: ComponentChildren;
}

/** A part that is folded until somebody opens it or follows a link to it. */
export function Fold({ id, text = id, summary, children }: FoldProps): VNode {
  return (
    <div class="heading">
      {id !== undefined && text !== undefined && <HeadingLink id={id} text={text} />}
      <details class="fold">
        <summary>{summary}</summary>
        <div id={id}>{children}</div>
      </details>
    </div>
  );
}
