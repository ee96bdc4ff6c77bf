import type { VNode } from 'preact';
import { renderMarkdown } from '../../parts/content/markdown.js';
import type { Contract } from './contract.js';

/** The context of each part of the reference. */
export interface ReferenceContext {
  readonly contract: Contract;
  /** The public URL of the service, an origin. */
  readonly baseUrl: string;
  /** The address of an error code, an operation or a schema that inline code names. */
  readonly linkCode: (code: string) => string | undefined;
}

interface TextProps {
  readonly context: ReferenceContext;
  readonly text: string | undefined;
}

/** A description of the contract, with links to the parts that it names. */
export function Text({ context: { linkCode }, text }: TextProps): VNode | null {
  if (text === undefined) return null;
  return <div dangerouslySetInnerHTML={{ __html: renderMarkdown(text, { linkCode }).html.trimEnd() }} />;
}
