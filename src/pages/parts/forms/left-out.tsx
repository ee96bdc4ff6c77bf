import type { VNode } from 'preact';
import { looksLikeKey, redactApiKeys } from '../../../keys/api-key.js';
import { printable } from '../../../platform/text/plain-text.js';
import { Notice } from '../content/components.js';
import type { PageContext } from '../context.js';
import { queryOf } from '../web/addresses.js';

/** Why a filter does not apply, by its name in addresses. */
const REASONS = {
  key: 'this project has no such key',
  kind: 'there is no such group of events',
  operation: 'there is no such operation',
  outcome: 'there is no such outcome',
  code: 'there is no such error',
  range: 'there is no such time range',
  period: 'there is no such period',
  sort: 'there is no such order',
  hour: 'it is not an hour, such as 2026-11-28T14:00',
} as const;

/** What a page is limited to, by the names of filters. Undefined for all. */
type Applied = Readonly<Partial<Record<keyof typeof REASONS, unknown>>>;

/** A filter that an address names and that does not apply. */
interface LeftOutFilter {
  readonly name: keyof typeof REASONS;
  readonly text: string;
}

/** @returns the filters that an address names and that its page is not limited by */
export function findLeftOut(ctx: PageContext, applied: Applied): readonly LeftOutFilter[] {
  const query = queryOf(ctx);
  return (Object.keys(applied) as LeftOutFilter['name'][]).flatMap((name) => {
    const text = query.get(name) ?? '';
    return text === '' || applied[name] !== undefined ? [] : [{ name, text }];
  });
}

/** The most characters of a filter that are shown. */
const SHOWN = 60;

/** Names the filters that do not apply: a page that only ignored them would seem to show what was asked for. */
export function LeftOut({ filters }: { readonly filters: readonly LeftOutFilter[] }): VNode | null {
  if (filters.length === 0) return null;
  return (
    <Notice tone="warning">
      {filters.map(({ name, text }) => (
        <span key={name}>
          The filter{' '}
          <code>
            {name}={printable(looksLikeKey(text) ? redactApiKeys(text) : text, SHOWN)}
          </code>{' '}
          was left out: {REASONS[name]}.{' '}
        </span>
      ))}
    </Notice>
  );
}
