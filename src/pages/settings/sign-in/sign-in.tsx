import type { VNode } from 'preact';
import { listPasskeys } from '../../../accounts/passkeys.js';
import { relyingPartyOf, type RelyingParty } from '../../../accounts/relying-party.js';
import { findSession, RECENT_MINUTES, type Session } from '../../../accounts/sessions.js';
import type { PageContext, PageRouter, SiteParts } from '../../parts/context.js';
import { CodeBlock, Notice } from '../../parts/content/components.js';
import { page } from '../../parts/frame/page.js';
import { Operator, UserText } from '../../parts/content/values.js';
import { addPasskeySignIn, PASSKEY_SIGN_IN } from './passkey.js';
import { PasskeyForm } from './passkey-form.js';
import { readReturn, SETTINGS } from '../../parts/web/return-to.js';
import { readCookie } from '../../parts/web/cookies.js';
import { addSignInLink } from './sign-in-link.js';
import { addSignUp } from './sign-up.js';

/** Adds the sign-in page, passkeys, sign-in links and sign-up. Sign-in at the identity provider is added separately. */
export function addSignIn(router: PageRouter, parts: SiteParts): void {
  router.get('/sign-in', (ctx) => showSignIn(ctx, parts));
  addPasskeySignIn(router, parts, (ctx, failure) => showSignIn(ctx, parts, failure));
  addSignInLink(router, parts);
  addSignUp(router, parts);
}

/** Answers with the sign-in page. @param failure - why a sign-in has just failed */
async function showSignIn(ctx: PageContext, { db, site }: SiteParts, failure?: string): Promise<void> {
  const session = await findSession(db, readCookie(ctx, 'session'));
  const developer = session?.developerId;
  const party = relyingPartyOf(site.publicUrl());
  const passkeys = developer === undefined ? undefined : await listPasskeys(db, developer);
  page(
    ctx,
    { title: 'Sign in', section: 'settings', ...(failure !== undefined && { status: 403, hasErrors: true }) },
    <>
      {failure !== undefined && (
        <Notice tone="danger" role="alert">
          {failure}
        </Notice>
      )}
      {session?.isRecent !== true && readReturn(ctx).interruption !== undefined && (
        <Notice tone="warning" role="alert">
          Your form was not processed, and nothing was changed. After you sign in, it comes back as you filled it in.
        </Notice>
      )}
      {session !== undefined && <SignedInAlready session={session} />}
      {session?.isRecent !== true && (
        <Ways
          // For somebody who is known to have no passkey, the browser would look for one in vain.
          party={passkeys?.length === 0 ? undefined : party}
          issuer={site.signInBy?.provider.host}
          developer={developer}
          canAddPasskey={party !== undefined && (passkeys ?? []).length === 0}
        />
      )}
    </>,
  );
}

interface WaysProps {
  /** What passkeys belong to; undefined where none can sign in. */
  readonly party: RelyingParty | undefined;
  /** The host of the identity provider; undefined without one. */
  readonly issuer: string | undefined;
  /** The id of the developer, if known. */
  readonly developer: number | undefined;
  /** Whether to point out that the next sign-in can be by passkey. */
  readonly canAddPasskey: boolean;
}

function Ways({ party, issuer, developer, canAddPasskey }: WaysProps): VNode {
  // Somebody who is not signed in may have no passkey, but everybody may have an identity at the provider.
  const isPasskeyFirst = developer !== undefined || issuer === undefined;
  const passkey = party !== undefined && (
    <PasskeyForm act="get" action={PASSKEY_SIGN_IN} party={party}>
      <button class={isPasskeyFirst ? 'button button-primary' : 'button'} type="submit">
        Sign in with a passkey
      </button>
    </PasskeyForm>
  );
  const provider = issuer !== undefined && (
    <a class={isPasskeyFirst && party !== undefined ? 'button' : 'button button-primary'} href="/sign-in/oidc">
      Sign in with {issuer}
    </a>
  );
  return (
    <>
      <div class="sign-in-ways">{isPasskeyFirst ? [passkey, provider] : [provider, passkey]}</div>
      <h2>Sign in with a link</h2>
      <p>
        Ask <Operator /> for a one-time link, and open it in this browser within ten minutes.
      </p>
      <details class="fold">
        <summary>For the operator</summary>
        <div>
          <p>Create the link with this command:</p>
          <CodeBlock label="Command" code={`catalog developers sign-in-link ${developer ?? 'ID'}`} />
        </div>
      </details>
      {canAddPasskey && (
        <p class="muted">
          Once you are signed in, you can add a passkey in the settings, and need no link from then on.
        </p>
      )}
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
      Sign in to {project} again. Creating and rolling keys, changing an expiry and adding passkeys require a sign-in
      within the last {RECENT_MINUTES} minutes. You can still <a href={SETTINGS}>view the settings and revoke keys</a>.
    </Notice>
  );
}
