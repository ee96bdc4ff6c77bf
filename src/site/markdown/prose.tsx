import type { VNode } from 'preact';
import { renderMarkdown, type MarkdownOptions } from './markdown.js';

interface ProseProps {
  /** CommonMark. */
  readonly text: string;
  readonly options?: MarkdownOptions;
}

/** A text of the contract or of a guide. Markdown is escaped where it is rendered. */
export function Prose({ text, options }: ProseProps): VNode {
  return <div dangerouslySetInnerHTML={{ __html: renderMarkdown(text, options).html.trimEnd() }} />;
}
