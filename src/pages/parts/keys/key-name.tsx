import { createContext, type VNode } from 'preact';
import { useContext } from 'preact/hooks';
import { harmless, UserText } from '../content/values.js';

/** @returns the address of the page of a key */
export function keyPath(prefix: string): string {
  return `/settings/keys/${prefix}`;
}

/** Where the pages of keys are. For operators they are elsewhere. */
export const KeyPath = createContext(keyPath);

interface KeyNameProps {
  readonly prefix: string;
  readonly label: string | null;
  /** Where the name leads; the page of the key by default. */
  readonly address?: string;
}

/** A key in a table: its label as a link, and its prefix below. A long label is cut off, to leave room on a phone. */
export function KeyName({ prefix, label, address = useContext(KeyPath)(prefix) }: KeyNameProps): VNode {
  return (
    <div class="key-name">
      <a href={address} title={label === null ? undefined : harmless(label)}>
        {label === null ? <code>{prefix}</code> : <UserText text={label} />}
      </a>
      {label !== null && <code>{prefix}</code>}
    </div>
  );
}

/** A key in a sentence: its prefix, which leads to its page, and its label. */
export function KeyReference({ prefix, label }: Omit<KeyNameProps, 'address'>): VNode {
  return (
    <>
      <a class="nowrap" href={useContext(KeyPath)(prefix)}>
        <code>{prefix}</code>
      </a>
      {label !== null && [' (', <UserText text={label} />, ')']}
    </>
  );
}
