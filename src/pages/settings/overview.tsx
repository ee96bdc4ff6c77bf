import type { ComponentChildren, VNode } from 'preact';
import { listIdentities } from '../../accounts/identities.js';
import { listPasskeys } from '../../accounts/passkeys.js';
import { relyingPartyOf } from '../../accounts/relying-party.js';
import { findDeveloper } from '../../developers/developers.js';
import { listEvents } from '../../events/events.js';
import { MAX_ACTIVE_KEYS } from '../../keys/key-change.js';
import { EXPIRES_SOON_DAYS, hintsOf, UNUSED_DAYS, type KeyHint, type KeyRecord } from '../../keys/key-record.js';
import { listKeysWithHints, readKeySummary, type KeySummary } from '../../keys/key-summary.js';
import { describeLimits, QUOTAS } from '../../limits/quotas.js';
import { formatCount } from '../../platform/text/count.js';
import { readRecentUsage, type RecentUsage } from '../../usage/read-usage.js';
import { Identities } from '../parts/accounts.js';
import { Button, Operator, RelativeTime, UserText, Facts, Stats } from '../parts/content/components.js';
import type { SiteParts } from '../parts/context.js';
import { EventTable } from '../parts/events.js';
import { keyPath } from '../parts/keys.js';
import { successRate, total } from '../parts/usage.js';
import { FAILED_REQUESTS } from './failed-requests.js';
import { FirstCall } from './first-call.js';
import { settingsPage, type Guards, type SettingsRouter } from './settings-page.js';
import { Quotas, readPlanStates, highShareOf, resetTime, type PlanState } from './usage.js';

const SHOWN_EVENTS = 5;

/** More keys with hints than this are not listed one by one. */
const SHOWN_KEYS = 5;

/** Adds the first page of the settings: what needs attention, the numbers of today, and the facts of the project. */
export function addOverview(router: SettingsRouter, parts: SiteParts, { requireSession }: Guards): void {
  const { db, site } = parts;

  router.get('/settings', requireSession, async (ctx) => {
    const { session } = ctx.state;
    const { developerId } = session;
    const keys = await readKeySummary(db, developerId);
    const hinted = await listKeysWithHints(db, developerId, SHOWN_KEYS + 1);
    const plans = await readPlanStates(parts, developerId);
    const usage = await readRecentUsage(db, developerId);
    const { today } = usage;
    const { attributionRequired } = await findDeveloper(db, developerId);
    const identities = await listIdentities(db, developerId);
    const passkeys = (await listPasskeys(db, developerId)).length;
    const canAddPasskey = session.suspendedAt === null && relyingPartyOf(site.publicUrl()) !== undefined;
    const isSuspended = session.suspendedAt !== null;
    settingsPage(
      ctx,
      { title: 'Overview', tab: 'overview' },
      <>
        <Warnings>
          {isSuspended ? [] : keyWarnings(keys, hinted, SHOWN_KEYS)}
          {isSuspended ? [] : quotaWarnings(plans)}
          {usageWarnings(usage)}
        </Warnings>
        {!isSuspended && <FirstSteps keys={keys} />}
        {keys.total > 0 && (
          <div class="today">
            <section>
              <h2 id="today">Today</h2>
              <Stats
                stats={{
                  'Active keys': [formatCount(keys.active), ' ', <span class="aside">of {MAX_ACTIVE_KEYS}</span>],
                  'Requests since 00:00 UTC': formatCount(total(today)),
                  'Success rate': successRate(today),
                  'Rate limited': formatCount(today.refused),
                }}
              />
              {today.served < total(today) && (
                <p>
                  <a href={FAILED_REQUESTS}>See the failed requests</a>
                </p>
              )}
            </section>
            <section>
              <h2 id="limits">Limits</h2>
              <Quotas states={plans} />
            </section>
          </div>
        )}
        <section>
          <h2 id="activity">Recent events</h2>
          <EventTable events={await listEvents(db, { developerId, limit: SHOWN_EVENTS })} />
          <p>
            <a href="/settings/events">All events</a>
          </p>
        </section>
        <section>
          <h2 id="project">Project</h2>
          <Facts
            facts={{
              Name: <UserText text={session.projectName} />,
              [plans.length === 1 ? 'Plan' : 'Plans']: plans.map(({ plan }) => (
                <div key={plan.id}>
                  {plan.name}: {describeLimits(plan)}, commercial use {plan.commercialUse ? 'allowed' : 'not allowed'}
                </div>
              )),
              Attribution: attributionRequired ? <Attribution text={site.attribution} /> : 'Not required',
              'Developer ID': (
                <>
                  {session.developerId}{' '}
                  <span class="muted">
                    Quote it when you contact <Operator />.
                  </span>
                </>
              ),
              ...(identities.length > 0 && {
                [identities.length === 1 ? 'Linked identity' : 'Linked identities']: (
                  <Identities identities={identities} />
                ),
              }),
              Passkeys: (passkeys > 0 || canAddPasskey) && (
                <>
                  <a href="/settings/passkeys">{passkeys > 0 ? passkeys : 'Add a passkey'}</a>
                  {passkeys === 0 && <span class="muted"> to sign in without a link</span>}
                </>
              ),
              'Signed in': <RelativeTime at={session.signedInAt} />,
            }}
          />
        </section>
      </>,
    );
  });
}

/** What a project owes that must credit the catalogue. @param text - the credit, if the operator has set one */
function Attribution({ text }: { readonly text: string | undefined }): VNode {
  if (text === undefined) {
    return (
      <>
        Required wherever you show data from the catalogue. Ask <Operator /> for the wording.
      </>
    );
  }
  return (
    <>
      Required wherever you show data from the catalogue: “<UserText text={text} />”
    </>
  );
}

/** What a developer does before the first request: create a key, then use it. Nothing once a key was used. */
function FirstSteps({ keys }: { readonly keys: KeySummary }): VNode | null {
  if (keys.isUsed || (keys.active === 0 && keys.total > 0)) return null;
  const call = <FirstCall keyPrefix={keys.newest ?? undefined} />;
  if (keys.total > 0) return call;
  return (
    <>
      <section class="card first-key">
        <h2 id="first-key">Create your first key</h2>
        <p>
          Every call needs an API key. It is shown once, so have your secret store ready. Use keys in back ends only,
          one for each environment.
        </p>
        <p>
          <Button href="/settings/keys/new" tone="primary" label="Create your first key" />
        </p>
      </section>
      {call}
    </>
  );
}

/** Fewer refusals are no trend. */
const LEAST_REFUSALS = 10;

/** Refusals are rising from this factor on. */
const RISE = 2;

/** The list of what needs attention; nothing without warnings. */
function Warnings({ children }: { readonly children: readonly (readonly VNode[])[] }): VNode | null {
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
  /** The key that it is about, for people who read the links alone. */
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
function keyWarnings(keys: KeySummary, hinted: readonly KeyRecord[], shown: number): readonly VNode[] {
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
  const name = <strong>{label === null ? prefix : <UserText text={label} />}</strong>;
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
function quotaWarnings(plans: readonly PlanState[]): readonly VNode[] {
  return plans.flatMap(({ plan, quotas }) =>
    quotas.flatMap((quota) => {
      const share = highShareOf(quota);
      if (share === undefined) return [];
      return (
        <Warning address="/settings/usage" action="See your limits">
          You have used {share >= 1 ? 'all' : `${Math.floor(share * 100)}% of the`} {formatCount(quota.limit)} requests{' '}
          {QUOTAS[quota.name].label.toLowerCase()} of the {plan.name} plan.{' '}
          {share >= 1 ? 'Further requests get 429 until the limit resets' : 'The limit resets'}{' '}
          {resetTime(quota.resetSeconds)}.
        </Warning>
      );
    }),
  );
}

/** @returns a warning when the limits have refused far more requests lately than before */
function usageWarnings({ refusedLately, refusedBefore }: RecentUsage): readonly VNode[] {
  if (refusedLately < LEAST_REFUSALS || refusedLately < RISE * refusedBefore) return [];
  return [
    <Warning address="/settings/usage?range=24h" action="See when">
      {formatCount(refusedLately)} requests hit your rate limit in the last 24 hours (
      {refusedBefore === 0 ? 'none' : formatCount(refusedBefore)} the day before).
    </Warning>,
  ];
}
