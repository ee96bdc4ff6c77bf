import type { VNode } from 'preact';
import { findSession, type Session } from '../../accounts/sessions.js';
import type { PageRouter, SiteParts } from '../context.js';
import { CodeBlock, Notice } from '../layout/components.js';
import { page } from '../layout/page.js';
import { UserText } from '../layout/values.js';
import { SETTINGS } from './return-to.js';
import { readCookie } from './cookies.js';
import { addSignInLink } from './sign-in-link.js';
import { addSignUp } from './sign-up.js';

/** Adds the ways to sign in, except those that wait for the identity provider. */
export function addSignIn(router: PageRouter, parts: SiteParts): void {
  const issuer = parts.site.signInBy?.provider.host;
  router.get('/sign-in', async (ctx) => {
    const session = await findSession(parts.db, readCookie(ctx, 'session'));
    page(ctx, { title: 'Sign in', section: 'settings' }, <SignInBody session={session} issuer={issuer} />);
  });
  addSignInLink(router, parts);
  addSignUp(router, parts);
}

interface SignInProps {
  readonly session: Session | undefined;
  /** The host of the identity provider; undefined for none. */
  readonly issuer: string | undefined;
}

function SignInBody({ session, issuer }: SignInProps): VNode {
  return (
    <div class="container">
      <h1>Sign in</h1>
      {session !== undefined && <SignedInAlready session={session} />}
      {session?.isRecent !== true && <Ways issuer={issuer} developer={session?.developerId} />}
    </div>
  );
}

interface WaysProps {
  readonly issuer: string | undefined;
  /** The id of the developer, if known. */
  readonly developer: number | undefined;
}

function Ways({ issuer, developer }: WaysProps): VNode {
  return (
    <>
      {issuer === undefined ? (
        <p>You sign in with a one-time link, which the operator of this service creates with this command:</p>
      ) : (
        <>
          <p>
            <a class="button button-primary" href="/sign-in/oidc">
              Sign in with {issuer}
            </a>
          </p>
          <p>Or use a one-time link, which the operator of this service creates with this command:</p>
        </>
      )}
      <CodeBlock label="For the operator" code={`catalog developers sign-in-link ${developer ?? 'ID'}`} />
      <p>Open the link in this browser within ten minutes.</p>
    </>
  );
}

function SignedInAlready({ session }: { readonly session: Session }): VNode {
  return session.isRecent ? (
    <Notice tone="ok">
      <p>
        You are signed in to <ProjectName name={session.projectName} />. <a href={SETTINGS}>Go to the settings</a>
      </p>
    </Notice>
  ) : (
    <Notice tone="info">
      <p>
        To create or roll a key for <ProjectName name={session.projectName} />, sign in again: you last signed in more
        than 15 minutes ago. You can still <a href={SETTINGS}>view the settings and revoke keys</a>.
      </p>
    </Notice>
  );
}

function ProjectName({ name }: { readonly name: string }): VNode {
  return (
    <strong>
      <UserText text={name} />
    </strong>
  );
}
