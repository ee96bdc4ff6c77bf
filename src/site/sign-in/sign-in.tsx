import type { VNode } from 'preact';
import { findSession, type Session } from '../../accounts/sessions.js';
import type { PageRouter, SiteParts } from '../context.js';
import { CodeBlock, Notice } from '../layout/components.js';
import { page } from '../layout/page.js';
import { UserText } from '../layout/user-text.js';
import { SETTINGS } from './return-to.js';
import { readCookie } from './cookies.js';
import { addSignInLink } from './sign-in-link.js';
import { addSignUp } from './sign-up.js';

/** Adds the ways to sign in, from `/sign-in` on, except those that wait for a provider of identities. */
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
  /** The host of the provider of identities; undefined where there is none. */
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
  /** The id of the developer, where it is known. */
  readonly developer: number | undefined;
}

function Ways({ issuer, developer }: WaysProps): VNode {
  return (
    <>
      {issuer === undefined ? (
        <p>You sign in with a link that works once, for ten minutes. The operator of this service makes one for you:</p>
      ) : (
        <>
          <p>
            <a class="button button-primary" href="/sign-in/oidc">
              Sign in with {issuer}
            </a>
          </p>
          <p>Or with a link that works once, for ten minutes. The operator of this service makes one for you:</p>
        </>
      )}
      <CodeBlock label="For the operator" code={`catalog developers sign-in-link ${developer ?? 'ID'}`} />
      <p>Open the link in this browser.</p>
    </>
  );
}

function SignedInAlready({ session }: { readonly session: Session }): VNode {
  return session.isRecent ? (
    <Notice tone="ok">
      <p>
        You are signed in for <ProjectName name={session.projectName} />. <a href={SETTINGS}>Go to the settings</a>
      </p>
    </Notice>
  ) : (
    <Notice tone="info">
      <p>
        Creating or rolling a key needs a sign-in of the last 15 minutes. You signed in for{' '}
        <ProjectName name={session.projectName} /> before that, so sign in again. You can still{' '}
        <a href={SETTINGS}>read the settings and revoke keys</a>.
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
