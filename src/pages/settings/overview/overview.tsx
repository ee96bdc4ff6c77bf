import { formatCount } from '../../../platform/text/count.js';
import { listIdentities } from '../../../accounts/identities.js';
import { listPasskeys } from '../../../accounts/passkeys.js';
import { relyingPartyOf } from '../../../accounts/relying-party.js';
import { listEvents } from '../../../events/events.js';
import { MAX_ACTIVE_KEYS } from '../../../keys/key-change.js';
import { listKeysWithHints, readKeySummary } from '../../../keys/key-summary.js';
import { readRecentUsage } from '../../../usage/read-usage.js';
import type { SiteParts } from '../../parts/context.js';
import { Identities } from '../../parts/accounts.js';
import { Operator, RelativeTime, UserText } from '../../parts/content/values.js';
import { EventTable } from '../../parts/events.js';
import type { Guards, SettingsRouter } from '../guards.js';
import { settingsPage } from '../settings-page.js';
import { Quotas, readPlanStates } from '../usage/quotas.js';
import { FirstSteps } from './first-call.js';
import { keyWarnings, quotaWarnings, usageWarnings, Warnings } from './warnings.js';
import { Facts, Stats } from '../../parts/content/components.js';
import { successRate, total } from '../../parts/usage/over-time.js';

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
          <>
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
            </section>
            <section>
              <h2 id="limits">Limits</h2>
              <Quotas states={plans} />
            </section>
          </>
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
              [plans.length === 1 ? 'Plan' : 'Plans']: plans.map(
                ({ plan: { id, name, requestsPerMinute, requestsPerDay } }) => (
                  <div key={id}>
                    {name}: {formatCount(requestsPerMinute)} requests per minute, {formatCount(requestsPerDay)} per day
                  </div>
                ),
              ),
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
