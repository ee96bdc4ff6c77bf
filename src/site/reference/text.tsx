import type { VNode } from 'preact';
import { Prose } from '../markdown/prose.js';
import { codeLinks } from './anchors.js';
import type { Contract } from './contract.js';

/** What each part of the reference needs. */
export interface ReferenceContext {
  readonly contract: Contract;
  /** The public URL of the service, an origin. */
  readonly baseUrl: string;
}

interface TextProps {
  readonly context: ReferenceContext;
  readonly text: string | undefined;
}

/** A description of the contract. Error codes, operations and schemas that it names are links. */
export function Text({ context, text }: TextProps): VNode | null {
  return text === undefined ? null : <Prose text={text} options={{ linkCode: codeLinks(context.contract) }} />;
}
