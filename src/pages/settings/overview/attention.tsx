import type { ComponentChildren, VNode } from 'preact';
import { EXPIRES_SOON_DAYS, hintsOf, UNUSED_DAYS, type KeyHint, type KeyRecord } from '../../../keys/key-record.js';
import type { EndedHint, KeySummary } from '../../../keys/key-summary.js';
import type { Plan } from '../../../limits/plans.js';
import { QUOTAS, type Quota } from '../../../limits/quotas.js';
import { formatCount } from '../../../platform/text/count.js';
import type { RecentUsage } from '../../../usage/read-usage.js';
import { RelativeTime, UserText } from '../../parts/content/components.js';
import { keyPath } from '../../parts/keys.js';
import { failuresAddress } from '../filters.js';
import { highShareOf, resetTime, type PlanState } from '../usage/quotas.js';

/** Something that a developer should look at. */
export type Attention =
  | { readonly kind: 'no_active_key' | 'more_keys' }
  | { readonly kind: 'key'; readonly record: KeyRecord; readonly hint: KeyHint }
  /** Requests may soon be refused by a quota, or are: the share of it that is used, from 0 to 1. */
  | { readonly kind: 'quota'; readonly plan: Plan; readonly quota: Quota; readonly share: number }
  /** A key that ended in the last days. */
  | { readonly kind: 'ended_key'; readonly record: KeyRecord; readonly hint: EndedHint }
  /** How many requests of this hour and the one before had an error, of how many. */
  | { readonly kind: 'errors'; readonly errors: number; readonly requests: number }
  /** How many requests the limits refused in the last 24 hours, and in those before. */
  | { readonly kind: 'refusals'; readonly lately: number; readonly before: number };

/** More keys with hints than this are not listed one by one. */
export const SHOWN_KEYS = 5;

/** The most keys with hints that have to be read: one more shows that there are more. */
export const READ_KEYS = SHOWN_KEYS + 1;

/** @returns advice on keys: none is active, or some expire soon, are unused or have no replacement */
export function keysToWatch(keys: KeySummary, hinted: readonly KeyRecord[]): readonly Attention[] {
  if (keys.total > 0 && keys.active + keys.rolled === 0) return [{ kind: 'no_active_key' }];
  const shown = hinted
    .slice(0, SHOWN_KEYS)
    .flatMap((record) => hintsOf(record).map((hint) => ({ kind: 'key', record, hint }) as const));
  return hinted.length > SHOWN_KEYS ? [...shown, { kind: 'more_keys' }] : shown;
}

/** @returns the limits of which so much is used that requests may soon be refused, or are */
export function quotasToWatch(plans: readonly PlanState[]): readonly Attention[] {
  return plans.flatMap(({ plan, quotas }) =>
    quotas.flatMap((quota) => {
      const share = highShareOf(quota);
      return share === undefined ? [] : [{ kind: 'quota', plan, quota, share } as const];
    }),
  );
}

/** Fewer refusals are no trend. */
const LEAST_REFUSALS = 10;

/** Refusals are rising from this factor on. */
const RISE = 2;

/** Fewer errors may be somebody's experiments. */
const LEAST_ERRORS = 10;

/** A part of the requests above which errors need attention. */
const ERROR_SHARE = 0.1;

/** @returns whether the limits have refused far more requests lately than before, and whether many requests fail now */
export function usageToWatch(usage: RecentUsage): readonly Attention[] {
  const { limitedLately: lately, limitedBefore: before, requestsNow: requests, errorsNow: errors } = usage;
  return [
    ...(lately < LEAST_REFUSALS || lately < RISE * before ? [] : [{ kind: 'refusals', lately, before } as const]),
    ...(errors < LEAST_ERRORS || errors <= ERROR_SHARE * requests
      ? []
      : [{ kind: 'errors', errors, requests } as const]),
  ];
}

/** The list of items that need attention; empty without any. */
export function NeedsAttention({ items }: { readonly items: readonly Attention[] }): VNode | null {
  if (items.length === 0) return null;
  return (
    <section>
      <h2 id="attention">Needs attention</h2>
      <ul class="warnings">{items.map(describe)}</ul>
    </section>
  );
}

interface WarningProps {
  /** Where the developer can act. */
  readonly address: string;
  readonly action: string;
  /** The key that it is about, for people who read only the links. */
  readonly about?: VNode;
  readonly children: ComponentChildren;
}

function Warning({ address, action, about, children }: WarningProps): VNode {
  return (
    <li class="notice tone-warning">
      {children}{' '}
      <a href={address}>
        {action}
        {about && <span class="visually-hidden">: {about}</span>}
      </a>
    </li>
  );
}

function describe(item: Attention): VNode {
  switch (item.kind) {
    case 'no_active_key':
      return (
        <Warning address="/settings/keys/new" action="Create a key">
          You have no active keys.
        </Warning>
      );
    case 'more_keys':
      return (
        <Warning address="/settings/keys" action="See all keys">
          More keys expire within {EXPIRES_SOON_DAYS} days, have not been used for {UNUSED_DAYS} days, or end without a
          replacement.
        </Warning>
      );
    case 'key':
      return describeHint(item.record, item.hint);
    case 'quota':
      return describeQuota(item);
    case 'ended_key':
      return describeEnded(item.record, item.hint);
    case 'errors':
      return (
        <Warning address={failuresAddress()} action="See the request errors">
          {formatCount(item.errors)} of {formatCount(item.requests)} requests in this hour and the one before had an
          error.
        </Warning>
      );
    case 'refusals':
      return (
        <Warning address="/settings/usage?range=24h" action="See when">
          {formatCount(item.lately)} requests hit your rate limit in the last 24 hours (
          {item.before === 0 ? 'none' : formatCount(item.before)} the day before).
        </Warning>
      );
  }
}

function nameOf({ prefix, label }: KeyRecord): VNode {
  return <strong>{label === null ? prefix : <UserText text={label} />}</strong>;
}

function describeEnded(record: KeyRecord, hint: EndedHint): VNode {
  const { prefix, revokedAt, expiresAt, lastRefusedAt } = record;
  const name = nameOf(record);
  const end = <RelativeTime at={revokedAt ?? expiresAt} />;
  return (
    <Warning address={keyPath(prefix)} action="See this key" about={name}>
      {hint === 'leaked' && [name, ' was revoked ', end, ' by somebody who found it. Find out where it leaked.']}
      {hint === 'expired_in_use' && [name, ' expired ', end, ' while it was in use.']}
      {hint === 'still_used' && [
        name,
        ` ${revokedAt === null ? 'ended' : 'was revoked'} `,
        end,
        ' but is still in use: a request with it was refused ',
        <RelativeTime at={lastRefusedAt} />,
        '.',
      ]}
    </Warning>
  );
}

function describeHint(record: KeyRecord, hint: KeyHint): VNode {
  const { prefix, expiresAt } = record;
  const name = nameOf(record);
  if (hint.kind === 'no_replacement') {
    return (
      <Warning address="/settings/keys/new" action="Create a key">
        {name} {expiresAt === null ? 'was rolled' : ['ends ', <RelativeTime at={expiresAt} />]}, and its replacement is
        no longer active.
      </Warning>
    );
  }
  const days = hint.days === 1 ? '1 day' : `${hint.days} days`;
  return hint.kind === 'expires_soon' ? (
    <Warning address={`${keyPath(prefix)}/roll`} action="Roll this key" about={name}>
      {name} expires {hint.days === 0 ? 'within a day' : `in ${days}`}.
    </Warning>
  ) : (
    <Warning address={`${keyPath(prefix)}/revoke`} action="Revoke this key" about={name}>
      {name} has not been used for {days}.
    </Warning>
  );
}

function describeQuota({ plan, quota, share }: Extract<Attention, { kind: 'quota' }>): VNode {
  return (
    <Warning address="/settings/usage" action="See your limits">
      You have used {share >= 1 ? 'all' : `${Math.floor(share * 100)}% of the`} {formatCount(quota.limit)} requests{' '}
      {QUOTAS[quota.name].label.toLowerCase()} of the {plan.name} plan.{' '}
      {share >= 1 ? 'Further requests get 429 until the limit resets' : 'The limit resets'}{' '}
      {resetTime(quota.resetSeconds)}.
    </Warning>
  );
}
