import type { VNode } from 'preact';
import { UserText } from '../layout/values.js';

interface KeyNameProps {
  readonly prefix: string;
  readonly label: string | null;
  /** Where the name leads. */
  readonly address: string;
}

/** A key in a table: its label as a link, and its prefix below. A long label is cut off, to leave room on a phone. */
export function KeyName({ prefix, label, address }: KeyNameProps): VNode {
  return (
    <div class="key-name">
      <a href={address}>{label === null ? <code>{prefix}</code> : <UserText text={label} />}</a>
      {label !== null && <code>{prefix}</code>}
    </div>
  );
}
