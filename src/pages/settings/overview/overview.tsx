import type { VNode } from 'preact';
import { listIdentities } from '../../../accounts/identities.js';
import type { Session } from '../../../accounts/sessions.js';
import { findDeveloper } from '../../../developers/developers.js';
import { listEvents } from '../../../events/events.js';
import { MAX_ACTIVE_KEYS } from '../../../keys/key-change.js';
import { listEndedKeysToWatch, listKeysWithHints, readKeySummary, type KeySummary } from '../../../keys/key-summary.js';
import { describeLimits } from '../../../limits/quotas.js';
import { formatCount } from '../../../platform/text/count.js';
import { total } from '../../../usage/outcome.js';
import { readRecentUsage } from '../../../usage/read-usage.js';
import { Identities } from '../../parts/accounts.js';
import { Button, Operator, UserText, Facts } from '../../parts/content/components.js';
import type { SiteParts } from '../../parts/context.js';
import { EventTable } from '../../parts/events.js';
import { readTogether } from '../../parts/read-together.js';
import { Outcomes } from '../../parts/usage.js';
import { failuresAddress } from '../filters.js';
import { FirstCall } from '../first-call.js';
import { settingsPage, type Guards, type SettingsRouter } from '../settings-page.js';
import { Quotas, readPlanStates } from '../usage/quotas.js';
import { NeedsAttention, READ_KEYS, SHOWN_KEYS } from './attention.js';

const SHOWN_EVENTS = 5;

type Overview = Awaited<ReturnType<typeof loadOverview>>;

/** Reads the content of the first page of the settings. */
export async function loadOverview(
  { db, limiter, site }: Pick<SiteParts, 'db' | 'limiter' | 'site'>,
  { developerId, suspendedAt }: Pick<Session, 'developerId' | 'suspendedAt'>,
) {
  const { developer, ...read } = await readTogether({
    keys: () => readKeySummary(db, developerId),
    hinted: () => listKeysWithHints(db, developerId, READ_KEYS),
    ended: () => listEndedKeysToWatch(db, developerId, SHOWN_KEYS),
    plans: () => readPlanStates({ db, limiter }, developerId),
    usage: () => readRecentUsage(db, developerId),
    developer: () => findDeveloper(db, developerId),
    identities: () => listIdentities(db, developerId),
    events: () => listEvents(db, { developerId, limit: SHOWN_EVENTS }),
  });
  return {
    developerId,
    isSuspended: suspendedAt !== null,
    /** Null where the project need not credit the catalogue; undefined where the operator has set no text. */
    credit: developer.attributionRequired ? site.attribution : null,
    ...read,
  };
}

/** Adds the first page of the settings: items that need attention, today's numbers, and the project's details. */
export function addOverview(router: SettingsRouter, parts: SiteParts, { requireSession }: Guards): void {
  router.get('/settings', requireSession, async (ctx) => {
    const overview = await loadOverview(parts, ctx.state.session);
    settingsPage(ctx, { title: 'Overview', tab: 'overview', hasOwnHeadings: true }, <OverviewPage {...overview} />);
  });
}

function OverviewPage(overview: Overview): VNode {
  const { isSuspended, keys, events } = overview;
  return (
    <>
      <NeedsAttention {...overview} />
      {!isSuspended && <FirstSteps keys={keys} />}
      {keys.total > 0 && <Today {...overview} />}
      <section>
        <h2 id="activity">Recent events</h2>
        <EventTable events={events} />
        <p>
          <a href="/settings/events">All events</a>
        </p>
      </section>
      <section>
        <h2 id="project">Project</h2>
        <Project {...overview} />
      </section>
    </>
  );
}

function Today({ keys, usage: { today }, plans }: Overview): VNode {
  return (
    <>
      <section>
        <h2 id="today">
          Today <span class="aside">since 00:00 UTC</span>
        </h2>
        <Outcomes
          counts={today}
          first={{ 'Active keys': [formatCount(keys.active), ' ', <span class="aside">of {MAX_ACTIVE_KEYS}</span>] }}
        />
        {today.successful < total(today) && (
          <p>
            <a href={failuresAddress()}>See the request errors</a>
          </p>
        )}
      </section>
      <section>
        <h2 id="limits">Limits</h2>
        <Quotas states={plans} />
      </section>
    </>
  );
}

function Project({ developerId, plans, credit, identities }: Overview): VNode {
  return (
    <Facts
      facts={{
        [plans.length === 1 ? 'Plan' : 'Plans']: plans.map(({ plan }) => (
          <div key={plan.id}>
            {plan.name}: {describeLimits(plan)}, commercial use {plan.commercialUse ? 'allowed' : 'not allowed'}
          </div>
        )),
        Attribution:
          credit === null
            ? 'Not required'
            : [
                'Required wherever you show data from the catalogue',
                ...(credit === undefined
                  ? ['. Ask ', <Operator />, ' for the wording.']
                  : [': “', <UserText text={credit} />, '”']),
              ],
        'Developer ID': (
          <>
            {developerId}{' '}
            <span class="muted">
              Quote it when you contact <Operator />.
            </span>
          </>
        ),
        ...(identities.length > 0 && {
          [identities.length === 1 ? 'Linked identity' : 'Linked identities']: <Identities identities={identities} />,
        }),
      }}
    />
  );
}

/** The steps before the first request: create a key, then use it. Nothing once a key was used. */
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
