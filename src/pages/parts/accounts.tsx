import type { VNode } from 'preact';
import type { LinkedIdentity } from '../../accounts/identities.js';
import type { ListedSession } from '../../accounts/sessions.js';
import type { SignInWay } from '../../events/events.js';
import { browserName } from './content/browser-name.js';
import { Badge } from './content/components.js';
import { Table } from './content/table.js';
import { RelativeTime, UserText } from './content/values.js';

const WAYS: Readonly<Record<SignInWay, string>> = {
  link: 'with a link',
  provider: 'with your provider',
  passkey: 'with a passkey',
};

interface SessionTableProps {
  readonly sessions: readonly ListedSession[];
  /** For the owner of the sessions: which one this browser has, and where the form that ends one is sent. */
  readonly own?: { readonly id: number; readonly endPath: string };
}

/** The sessions of a developer. */
export function SessionTable({ sessions, own }: SessionTableProps): VNode {
  return (
    <Table
      caption="Sessions"
      hasCards
      columns={['Browser', 'Signed in', 'Last seen', ...(own ? [{ label: 'Actions', actions: true } as const] : [])]}
      rows={sessions.map(({ id, userAgent, signedInAt, way, lastSeenAt }) => [
        <>
          {browserName(userAgent)} {id === own?.id && <Badge tone="ok">This browser</Badge>}
        </>,
        <span>
          <RelativeTime at={signedInAt} />
          {way !== null && own && `, ${WAYS[way]}`}
        </span>,
        <RelativeTime at={lastSeenAt} />,
        ...(own
          ? [
              <form method="post" action={own.endPath}>
                <input type="hidden" name="session" value={id} />
                <button
                  class="button button-quiet danger"
                  type="submit"
                  aria-label={`End session ${id}, ${browserName(userAgent)}`}
                >
                  End
                </button>
              </form>,
            ]
          : []),
      ])}
    />
  );
}

/** The identities that sign in as a developer, one below the other. */
export function Identities({ identities }: { readonly identities: readonly LinkedIdentity[] }): VNode {
  return (
    <>
      {identities.map(({ issuer, subject }) => (
        <div key={`${issuer} ${subject}`}>
          <code>
            <UserText text={subject} />
          </code>{' '}
          at {issuer}
        </div>
      ))}
    </>
  );
}
