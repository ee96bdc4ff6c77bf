import { createContext, type VNode } from 'preact';
import { useContext } from 'preact/hooks';

/** The value of `OPERATOR_CONTACT`, a `mailto:` or web URL. Every page has it. */
export const OperatorContact = createContext<string | undefined>(undefined);

const WORDS = 'the operator of this service';

/**
 * "The operator of this service", as a link to the operator's contact if the deployment has one.
 *
 * @example <p>Ask <Operator /> for a new link.</p>
 */
export function Operator({ showsAddress = false }: { readonly showsAddress?: boolean }): VNode {
  const contact = useContext(OperatorContact);
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
