import type { ComponentChildren, VNode } from 'preact';
import { formatCount } from '../../../platform/text/count.js';
import { EXPIRES_SOON_DAYS, hintsOf, UNUSED_DAYS, type KeyHint, type KeyRecord } from '../../../keys/key-record.js';
import type { KeySummary } from '../../../keys/key-summary.js';
import type { RecentUsage } from '../../../usage/read-usage.js';
import { RelativeTime, UserText } from '../../parts/content/values.js';
import { keyPath } from '../../parts/keys/key-name.js';
import { highShareOf, resetTime, type PlanState } from '../usage/quotas.js';

/** Fewer refusals are no trend. */
const LEAST_REFUSALS = 10;

/** Refusals are rising from this factor on. */
const RISE = 2;

/** The list of what needs attention; nothing without warnings. */
export function Warnings({ children }: { readonly children: readonly (readonly VNode[])[] }): VNode | null {
  const warnings = children.flat();
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
  /** The key that it is about, for those who read the links alone. */
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

/**
 * @param hinted - keys with hints, and one more than are shown if there are more
 * @returns what the developer should do about keys: none active, some expire soon, unused or without a replacement
 */
export function keyWarnings(keys: KeySummary, hinted: readonly KeyRecord[], shown: number): readonly VNode[] {
  if (keys.total > 0 && keys.active + keys.rolled === 0) {
    return [
      <Warning address="/settings/keys/new" action="Create a key">
        You have no active keys.
      </Warning>,
    ];
  }
  const warnings = hinted.slice(0, shown).flatMap((record) => hintsOf(record).map((hint) => keyWarning(record, hint)));
  if (hinted.length <= shown) return warnings;
  return [
    ...warnings,
    <Warning address="/settings/keys" action="See all keys">
      More keys expire within {EXPIRES_SOON_DAYS} days, have not been used for {UNUSED_DAYS} days, or end without a
      replacement.
    </Warning>,
  ];
}

function keyWarning({ prefix, label, expiresAt }: KeyRecord, hint: KeyHint): VNode {
  const name = label === null ? <code>{prefix}</code> : <UserText text={label} />;
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

/** @returns the limits of which so much is used that requests may soon be refused, or are */
export function quotaWarnings(plans: readonly PlanState[]): readonly VNode[] {
  return plans.flatMap(({ plan, quotas }) =>
    quotas.flatMap((quota) => {
      const share = highShareOf(quota);
      if (share === undefined) return [];
      const window = quota.name === 'minute' ? 'per minute' : 'per 24 hours';
      return (
        <Warning address="/settings/usage" action="See your limits">
          You have used {share >= 1 ? 'all' : `${Math.floor(share * 100)}% of the`} {formatCount(quota.limit)} requests{' '}
          {window} of the {plan.name} plan.{' '}
          {share >= 1 ? 'Further requests are refused until the limit resets' : 'The limit resets'}{' '}
          {resetTime(quota.resetSeconds)}.
        </Warning>
      );
    }),
  );
}

/** @returns a warning when the limits have refused far more requests lately than before */
export function usageWarnings({ refusedLately, refusedBefore }: RecentUsage): readonly VNode[] {
  if (refusedLately < LEAST_REFUSALS || refusedLately < RISE * refusedBefore) return [];
  return [
    <Warning address="/settings/usage?range=24h" action="See when">
      {formatCount(refusedLately)} requests were refused by your limits in the last 24 hours (
      {formatCount(refusedBefore)} in the 24 hours before).
    </Warning>,
  ];
}
