import type { VNode } from 'preact';
import { harmless, UserText } from '../layout/values.js';

/** @returns the address of the page of a key */
export function keyPath(prefix: string): string {
  return `/settings/keys/${prefix}`;
}

interface KeyNameProps {
  readonly prefix: string;
  readonly label: string | null;
  /** Where the name leads; the page of the key by default. */
  readonly address?: string;
}

/** A key in a table: its label as a link, and its prefix below. A long label is cut off, to leave room on a phone. */
export function KeyName({ prefix, label, address = keyPath(prefix) }: KeyNameProps): VNode {
  return label === null ? (
    <div class="key-name">
      <a href={address}>
        <code>{prefix}</code>
      </a>
    </div>
  ) : (
    <div class="key-name">
      <a href={address} title={harmless(label)}>
        <UserText text={label} />
      </a>
      <code>{prefix}</code>
    </div>
  );
}

/** A key in a sentence: its prefix, which leads to its page, and its label. */
export function KeyReference({ prefix, label }: Omit<KeyNameProps, 'address'>): VNode {
  return (
    <>
      <a class="nowrap" href={keyPath(prefix)}>
        <code>{prefix}</code>
      </a>
      {label !== null && (
        <>
          {' '}
          (<UserText text={label} />)
        </>
      )}
    </>
  );
}
