import type { VNode } from 'preact';
import type { LinkedIdentity } from '../../accounts/identities.js';
import type { ListedSession } from '../../accounts/sessions.js';
import type { SignInWay } from '../../events/events.js';
import { printable } from '../../platform/text/plain-text.js';
import { Badge, RelativeTime, UserText } from './content/components.js';
import { Table } from './content/table.js';

/** How a User-Agent names each browser. Many also name others, so the order counts. */
const BROWSERS = [
  ['Edge', /\bEdg(?:e|A|iOS)?\//],
  ['Opera', /\bOPR\//],
  ['Samsung Internet', /\bSamsungBrowser\//],
  ['Firefox', /\b(?:Firefox|FxiOS)\//],
  ['Chrome', /\b(?:Headless)?(?:Chrome|CriOS)\//],
  ['Safari', /\bVersion\/.*\bSafari\//],
] as const;

const SYSTEMS = [
  ['iPhone', /\biPhone\b/],
  ['iPad', /\biPad\b/],
  ['Android', /\bAndroid\b/],
  ['Windows', /\bWindows NT\b/],
  ['ChromeOS', /\bCrOS\b/],
  ['macOS', /\bMac OS X\b/],
  ['Linux', /\bLinux\b/],
] as const;

/** How much of any other User-Agent is shown, in characters. */
const MAX_LENGTH = 60;

/** @returns a browser and its system for people to recognise, `Firefox on Linux`; otherwise its User-Agent */
export function browserName(userAgent: string): string {
  const find = (names: readonly (readonly [string, RegExp])[]): string | undefined =>
    names.find(([, pattern]) => pattern.test(userAgent))?.[0];
  const [browser, system] = [find(BROWSERS), find(SYSTEMS)];
  if (browser !== undefined) return system === undefined ? browser : `${browser} on ${system}`;
  return printable(userAgent, MAX_LENGTH) || 'Unknown browser';
}

/** How somebody signed in, to end a sentence. */
export const WAYS: Readonly<Record<SignInWay, string>> = {
  link: 'with a link',
  provider: 'with an identity provider',
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
      columns={['Browser', 'Signed in', 'Last seen', ...(own ? [{ label: 'Actions', kind: 'actions' } as const] : [])]}
      rows={sessions.map(({ id, userAgent, signedInAt, way, address, lastSeenAt }) => [
        <>
          {browserName(userAgent)} {id === own?.id && <Badge tone="ok">This browser</Badge>}
        </>,
        <span>
          <RelativeTime at={signedInAt} />
          {way !== null && own && `, ${WAYS[way]}`}
          {address !== null && ` from ${address}`}
        </span>,
        <RelativeTime at={lastSeenAt} />,
        ...(own
          ? [
              <form method="post" action={own.endPath}>
                <input type="hidden" name="session" value={id} />
                <button
                  class="button button-quiet danger"
                  type="submit"
                  aria-label={`Sign out ${browserName(userAgent)}, session ${id}`}
                >
                  Sign out
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
