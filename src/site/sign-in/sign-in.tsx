import type { VNode } from 'preact';
import { findSession, RECENT_MINUTES, type Session } from '../../accounts/sessions.js';
import type { PageRouter, SiteParts } from '../context.js';
import { CodeBlock, Notice } from '../layout/components.js';
import { Operator } from '../layout/operator.js';
import { page } from '../layout/page.js';
import { UserText } from '../layout/values.js';
import { SETTINGS } from './return-to.js';
import { readCookie } from './cookies.js';
import { addSignInLink } from './sign-in-link.js';
import { addSignUp } from './sign-up.js';

/** Adds the sign-in page, sign-in links and sign-up. Sign-in at the identity provider is added separately. */
export function addSignIn(router: PageRouter, parts: SiteParts): void {
  const issuer = parts.site.signInBy?.provider.host;
  router.get('/sign-in', async (ctx) => {
    const session = await findSession(parts.db, readCookie(ctx, 'session'));
    page(
      ctx,
      { title: 'Sign in', section: 'settings' },
      <>
        {session !== undefined && <SignedInAlready session={session} />}
        {session?.isRecent !== true && <Ways issuer={issuer} developer={session?.developerId} />}
      </>,
    );
  });
  addSignInLink(router, parts);
  addSignUp(router, parts);
}

interface WaysProps {
  /** The host of the identity provider; undefined without one. */
  readonly issuer: string | undefined;
  /** The id of the developer, if known. */
  readonly developer: number | undefined;
}

function Ways({ issuer, developer }: WaysProps): VNode {
  return (
    <>
      {issuer !== undefined && (
        <p>
          <a class="button button-primary" href="/sign-in/oidc">
            Sign in with {issuer}
          </a>
        </p>
      )}
      <p>
        {issuer === undefined ? 'To sign in, ask' : 'Or ask'} <Operator /> for a one-time link. The operator creates it
        with this command:
      </p>
      <CodeBlock label="For the operator" code={`catalog developers sign-in-link ${developer ?? 'ID'}`} />
      <p>Open the link in this browser within ten minutes.</p>
    </>
  );
}

function SignedInAlready({ session }: { readonly session: Session }): VNode {
  const project = (
    <strong>
      <UserText text={session.projectName} />
    </strong>
  );
  return session.isRecent ? (
    <Notice tone="ok">
      You are signed in to {project}. <a href={SETTINGS}>Go to the settings</a>
    </Notice>
  ) : (
    <Notice tone="info">
      To create or roll a key for {project}, sign in again: you last signed in more than {RECENT_MINUTES} minutes ago.
      You can still <a href={SETTINGS}>view the settings and revoke keys</a>.
    </Notice>
  );
}
