import type { VNode } from 'preact';
import type { LinkedIdentity } from '../../accounts/identities.js';
import type { Session } from '../../accounts/sessions.js';
import type { Plan } from '../../limits/plans.js';
import { formatNumber } from '../layout/numbers.js';
import { Time } from '../layout/time.js';
import { UserText } from '../layout/user-text.js';
import { TABS, type Tab } from './settings-page.js';

/** What each other page of the settings is for. */
const PURPOSES: Readonly<Record<Exclude<Tab, 'overview'>, string>> = {
  keys: 'Create, roll and revoke the keys of your back ends.',
  usage: 'See what your plans have left, and the requests of 30 days.',
  events: 'See what happened to your keys and your account, and by whom.',
  sessions: 'See which browsers are signed in, and end sessions.',
};

interface OverviewProps {
  readonly session: Session;
  /** Those that count for the developer. */
  readonly plans: readonly Plan[];
  /** Those that sign in as the developer. */
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
                {name}: {formatNumber(requestsPerMinute)} requests a minute, {formatNumber(requestsPerDay)} a day
              </div>
            ))}
          </dd>
        </div>
        <div>
          <dt>Developer</dt>
          <dd>{session.developerId}, as the operator of this service knows you</dd>
        </div>
        {identities.length > 0 && (
          <div>
            <dt>Signs in as you</dt>
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
      <ul class="card-grid settings-parts">
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
