import type { VNode } from 'preact';
import type { Session } from '../../accounts/sessions.js';
import type { Plan } from '../../limits/plans.js';
import { formatNumber } from '../layout/numbers.js';
import { Time } from '../layout/time.js';
import { UserText } from '../layout/user-text.js';

/** What the settings are for, each with the page that has it. */
const PARTS = [
  { path: '/settings/keys', label: 'Keys', text: 'Create, roll and revoke the keys of your back ends.' },
  { path: '/settings/usage', label: 'Usage', text: 'See what your plans have left, and the requests of 30 days.' },
  { path: '/settings/events', label: 'Events', text: 'See what happened to your keys and your account, and by whom.' },
  { path: '/settings/sessions', label: 'Sessions', text: 'See which browsers are signed in, and end sessions.' },
] as const;

interface OverviewProps {
  readonly session: Session;
  /** Those that count for the developer. */
  readonly plans: readonly Plan[];
}

/** The first page of the settings. */
export function Overview({ session, plans }: OverviewProps): VNode {
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
        <div>
          <dt>Signed in</dt>
          <dd>
            <Time at={session.signedInAt} />
          </dd>
        </div>
      </dl>
      <ul class="card-grid settings-parts">
        {PARTS.map(({ path, label, text }) => (
          <li key={path} class="card">
            <h2>
              <a href={path}>{label}</a>
            </h2>
            <p>{text}</p>
          </li>
        ))}
      </ul>
    </>
  );
}
