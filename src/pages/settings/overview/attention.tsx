import type { ComponentChildren, VNode } from 'preact';
import { EXPIRES_SOON_DAYS, hintsOf, UNUSED_DAYS, type KeyHint, type KeyRecord } from '../../../keys/key-record.js';
import type { EndedHint, KeySummary } from '../../../keys/key-summary.js';
import type { Plan } from '../../../limits/plans.js';
import { QUOTAS, type Quota } from '../../../limits/quotas.js';
import { formatCount } from '../../../platform/text/count.js';
import type { RecentUsage } from '../../../usage/read-usage.js';
import { RelativeTime, UserText } from '../../parts/content/components.js';
import { keyPath } from '../../parts/keys.js';
import { MANY } from '../../parts/usage.js';
import { failuresAddress } from '../filters.js';
import { highShareOf, resetTime, type PlanState } from '../usage/quotas.js';

/** More keys with hints than this are not listed one by one. */
export const SHOWN_KEYS = 5;

/** The most keys with hints that have to be read: one more shows that there are more. */
export const READ_KEYS = SHOWN_KEYS + 1;

/** Fewer refusals are no trend. */
const LEAST_REFUSALS = 10;

/** Refusals are rising from this factor on. */
const RISE = 2;

/** Fewer errors may be somebody's experiments. */
const LEAST_ERRORS = 10;

interface AttentionProps {
  readonly isSuspended: boolean;
  readonly keys: KeySummary;
  /** At most {@link READ_KEYS} that expire soon, are unused or have no replacement. */
  readonly hinted: readonly KeyRecord[];
  /** Keys that ended in the last days. */
  readonly ended: readonly (KeyRecord & { readonly hint: EndedHint })[];
  readonly plans: readonly PlanState[];
  readonly usage: RecentUsage;
}

/** The list of what a developer should look at; nothing if nothing needs it. A suspended one can do little about keys. */
export function NeedsAttention({ isSuspended, keys, hinted, ended, plans, usage }: AttentionProps): VNode | null {
  const warnings = [
    ...(isSuspended ? [] : [keysToWatch(keys, hinted), ended.map(endedKey), plans.map(quotasToWatch)].flat(2)),
    ...usageToWatch(usage),
  ];
  if (warnings.length === 0) return null;
  return (
    <section>
      <h2 id="attention">Needs attention</h2>
      <ul class="warnings">{warnings}</ul>
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

function keysToWatch(keys: KeySummary, hinted: readonly KeyRecord[]): readonly VNode[] {
  if (keys.total > 0 && keys.active + keys.rolled === 0) {
    return [
      <Warning address="/settings/keys/new" action="Create a key">
        You have no active keys.
      </Warning>,
    ];
  }
  const shown = hinted.slice(0, SHOWN_KEYS).flatMap((record) => hintsOf(record).map((hint) => hintedKey(record, hint)));
  if (hinted.length <= SHOWN_KEYS) return shown;
  return [
    ...shown,
    <Warning address="/settings/keys" action="See all keys">
      More keys expire within {EXPIRES_SOON_DAYS} days, have not been used for {UNUSED_DAYS} days, or end without a
      replacement.
    </Warning>,
  ];
}

function nameOf({ prefix, label }: KeyRecord): VNode {
  return <strong>{label === null ? prefix : <UserText text={label} />}</strong>;
}

function hintedKey(record: KeyRecord, hint: KeyHint): VNode {
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

function endedKey({ hint, ...record }: AttentionProps['ended'][number]): VNode {
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

/** The limits of a plan of which so much is used that requests may soon be refused, or are. */
function quotasToWatch({ plan, quotas }: PlanState): readonly VNode[] {
  return quotas.flatMap((quota) => {
    const share = highShareOf(quota);
    return share === undefined ? [] : [highQuota(plan, quota, share)];
  });
}

function highQuota(plan: Plan, quota: Quota, share: number): VNode {
  return (
    <Warning address="/settings/usage" action="See your limits">
      You have used {share >= 1 ? 'all' : `${Math.floor(share * 100)}% of the`} {formatCount(quota.limit)} requests{' '}
      {QUOTAS[quota.name].label.toLowerCase()} of the {plan.name} plan.{' '}
      {share >= 1 ? 'Further requests get 429 until the limit resets' : 'The limit resets'}{' '}
      {resetTime(quota.resetSeconds)}.
    </Warning>
  );
}

/** Whether the limits have refused far more requests lately than before, and whether many requests fail now. */
function usageToWatch({ limitedLately, limitedBefore, requestsNow, errorsNow }: RecentUsage): readonly VNode[] {
  const warnings = [];
  if (limitedLately >= LEAST_REFUSALS && limitedLately >= RISE * limitedBefore) {
    warnings.push(
      <Warning address="/settings/usage?range=24h" action="See when">
        {formatCount(limitedLately)} requests hit your rate limit in the last 24 hours (
        {limitedBefore === 0 ? 'none' : formatCount(limitedBefore)} the day before).
      </Warning>,
    );
  }
  if (errorsNow >= LEAST_ERRORS && errorsNow > MANY * requestsNow) {
    warnings.push(
      <Warning address={failuresAddress()} action="See the request errors">
        {formatCount(errorsNow)} of {formatCount(requestsNow)} requests in this hour and the one before had an error.
      </Warning>,
    );
  }
  return warnings;
}
