import type { VNode } from 'preact';
import type { LinkedIdentity } from '../../accounts/identities.js';
import type { Session } from '../../accounts/sessions.js';
import type { Plan } from '../../limits/plans.js';
import { Operator } from '../layout/operator.js';
import { formatNumber, Time, UserText } from '../layout/values.js';
import { TABS, type Tab } from './settings-page.js';

/** What the other pages of the settings are for. */
const PURPOSES: Readonly<Record<Exclude<Tab, 'overview'>, string>> = {
  keys: 'Create, roll and revoke the API keys of your back ends.',
  usage: 'See your remaining quota and the requests of the last 30 days.',
  events: 'See every change to your keys and your account, and who made it.',
  passkeys: 'Sign in with your fingerprint, face or PIN in place of a link.',
  sessions: 'See where you are signed in, and end sessions you do not recognise.',
};

interface OverviewProps {
  readonly session: Session;
  /** The plan of the developer's new keys, and those of the active keys. */
  readonly plans: readonly Plan[];
  /** The identities that sign in as the developer. */
  readonly identities: readonly LinkedIdentity[];
}

/** The first page of the settings. */
export function Overview({ session, plans, identities }: OverviewProps): VNode {
  return (
    <>
      <dl class="facts">
        <div>
          <dt>Project</dt>
          <dd>
            <UserText text={session.projectName} />
          </dd>
        </div>
        <div>
          <dt>{plans.length === 1 ? 'Plan' : 'Plans'}</dt>
          <dd>
            {plans.map(({ id, name, requestsPerMinute, requestsPerDay }) => (
              <div key={id}>
                {name}: {formatNumber(requestsPerMinute)} requests per minute, {formatNumber(requestsPerDay)} per day
              </div>
            ))}
          </dd>
        </div>
        <div>
          <dt>Developer ID</dt>
          <dd>
            {session.developerId}{' '}
            <span class="muted">
              Quote it when you contact <Operator />.
            </span>
          </dd>
        </div>
        {identities.length > 0 && (
          <div>
            <dt>{identities.length === 1 ? 'Linked identity' : 'Linked identities'}</dt>
            <dd>
              {identities.map(({ issuer, subject }) => (
                <div key={`${issuer} ${subject}`}>
                  <code>
                    <UserText text={subject} />
                  </code>{' '}
                  at {issuer}
                </div>
              ))}
            </dd>
          </div>
        )}
        <div>
          <dt>Signed in</dt>
          <dd>
            <Time at={session.signedInAt} />
          </dd>
        </div>
      </dl>
      <ul class="card-grid">
        {TABS.filter((tab) => tab.id !== 'overview').map(({ id, path, label }) => (
          <li key={path} class="card">
            <h2>
              <a href={path}>{label}</a>
            </h2>
            <p>{PURPOSES[id]}</p>
          </li>
        ))}
      </ul>
    </>
  );
}
