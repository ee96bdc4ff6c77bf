import type { VNode } from 'preact';
import { listPasskeys } from '../../accounts/passkeys.js';
import { relyingPartyOf, type RelyingParty } from '../../accounts/relying-party.js';
import { findSession, RECENT_MINUTES, type Session } from '../../accounts/sessions.js';
import type { PageContext, PageRouter, SiteParts } from '../context.js';
import { CodeBlock, Notice } from '../layout/components.js';
import { Operator } from '../layout/operator.js';
import { page } from '../layout/page.js';
import { UserText } from '../layout/values.js';
import { addPasskeySignIn, PASSKEY_SIGN_IN } from './passkey.js';
import { PasskeyForm } from './passkey-form.js';
import { interruptionOf, readReturnAddress, SETTINGS } from './return-to.js';
import { readCookie } from './cookies.js';
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
  // For somebody who is signed in and has no passkey, the browser would look for one in vain.
  const mayHavePasskey = developer === undefined || (await listPasskeys(db, developer)).length > 0;
  page(
    ctx,
    { title: 'Sign in', section: 'settings', status: failure === undefined ? 200 : 403 },
    <>
      {failure !== undefined && (
        <Notice tone="danger" role="alert">
          {failure}
        </Notice>
      )}
      {session?.isRecent !== true && interruptionOf(readReturnAddress(ctx)) !== undefined && (
        <Notice tone="warning" role="alert">
          Your form was not processed, and nothing was changed. After you sign in, it comes back as you filled it in.
        </Notice>
      )}
      {session !== undefined && <SignedInAlready session={session} />}
      {session?.isRecent !== true && (
        <Ways
          party={mayHavePasskey ? relyingPartyOf(site.publicUrl()) : undefined}
          issuer={site.signInBy?.provider.host}
          developer={developer}
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
}

function Ways({ party, issuer, developer }: WaysProps): VNode {
  return (
    <>
      <div class="sign-in-ways">
        {party !== undefined && (
          <PasskeyForm act="get" action={PASSKEY_SIGN_IN} party={party}>
            <button class="button button-primary" type="submit">
              Sign in with a passkey
            </button>
          </PasskeyForm>
        )}
        {issuer !== undefined && (
          <a class="button button-primary" href="/sign-in/oidc">
            Sign in with {issuer}
          </a>
        )}
      </div>
      <h2>Sign in with a link</h2>
      <p>
        Ask <Operator /> for a one-time link. The operator creates it with this command:
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
