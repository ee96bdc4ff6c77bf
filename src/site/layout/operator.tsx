import { createContext, type VNode } from 'preact';
import { useContext } from 'preact/hooks';

/** The value of `OPERATOR_CONTACT`, a `mailto:` or web URL. Every page has it. */
export const OperatorContact = createContext<string | undefined>(undefined);

/**
 * "The operator of this service", as a link to the operator's contact if the deployment has one.
 *
 * @example <p>Ask <Operator /> for a new link.</p>
 */
export function Operator(): VNode {
  const contact = useContext(OperatorContact);
  const words = 'the operator of this service';
  return contact === undefined ? <>{words}</> : <a href={contact}>{words}</a>;
}
