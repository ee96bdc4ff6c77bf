import type { Knex } from 'knex';
import type { VNode } from 'preact';
import { listPasskeys } from '../../../accounts/passkeys.js';
import { relyingPartyOf } from '../../../accounts/relying-party.js';
import { findSession, RECENT_MINUTES, type Session } from '../../../accounts/sessions.js';
import type { PageContext, PageRouter, SiteParts } from '../../parts/context.js';
import { Button, CommandBlock, Notice, Operator, UserText } from '../../parts/content/components.js';
import { page } from '../../parts/frame/page.js';
import { addPasskeySignIn, PASSKEY_SIGN_IN } from './passkey.js';
import { PasskeyForm } from './passkey-form.js';
import { isInterrupted } from '../../parts/frame/notices.js';
import { SETTINGS } from './return-to.js';
import { readCookie } from '../../parts/web/cookies.js';
import { addSignInLink } from './sign-in-link.js';
import { addSignUp } from './oidc.js';

/** Adds the sign-in page, passkeys, sign-in links and sign-up. Sign-in at the identity provider is added separately. */
export function addSignIn(router: PageRouter, parts: SiteParts): void {
  router.get('/sign-in', (ctx) => showSignIn(ctx, parts));
  addPasskeySignIn(router, parts, (ctx, failure) => showSignIn(ctx, parts, failure));
  addSignInLink(router, parts);
  addSignUp(router, parts);
}

/** The owner of the browser: their session and how many passkeys they have; undefined for a stranger. */
async function loadSignIn(db: Knex, ctx: PageContext) {
  const session = await findSession(db, readCookie(ctx, 'session'));
  const passkeys = session && (await listPasskeys(db, session.developerId)).length;
  return { session, passkeys, isInterrupted: isInterrupted(ctx) };
}

/** Answers with the sign-in page. @param failure - why a sign-in has just failed */
async function showSignIn(ctx: PageContext, { db, site }: SiteParts, failure?: string): Promise<void> {
  page(
    ctx,
    {
      title: 'Sign in',
      section: 'settings',
      isCard: true,
      ...(failure !== undefined && { status: 403, hasErrors: true }),
    },
    <SignInPage {...await loadSignIn(db, ctx)} site={site} failure={failure} />,
  );
}

interface SignInProps extends Awaited<ReturnType<typeof loadSignIn>> {
  readonly site: SiteParts['site'];
  readonly failure: string | undefined;
}

function SignInPage({ session, passkeys, isInterrupted, site, failure }: SignInProps): VNode {
  return (
    <>
      {failure !== undefined && (
        <Notice tone="danger" role="alert">
          {failure}
        </Notice>
      )}
      {session?.isRecent !== true && isInterrupted && (
        <Notice tone="warning" role="alert">
          Your form was not processed, and nothing was changed. After you sign in, it comes back as you filled it in.
        </Notice>
      )}
      {session !== undefined && <SignedInAlready session={session} />}
      {session?.isRecent !== true && <Ways site={site} developer={session?.developerId} passkeys={passkeys} />}
    </>
  );
}

interface WaysProps {
  readonly site: SiteParts['site'];
  /** The id of the developer, if known. */
  readonly developer: number | undefined;
  /** How many passkeys the developer has, if known. */
  readonly passkeys: number | undefined;
}

function Ways({ site, developer, passkeys }: WaysProps): VNode {
  const party = relyingPartyOf(site.publicUrl());
  const issuer = site.signInBy?.name;
  return (
    <>
      <div class="sign-in-ways">
        {issuer !== undefined && <Button href="/sign-in/oidc" tone="primary" label={`Sign in with ${issuer}`} />}
        {/* For somebody who is known to have no passkey, the browser would look for one in vain. */}
        {party !== undefined && passkeys !== 0 && (
          <PasskeyForm act="get" action={PASSKEY_SIGN_IN} party={party}>
            <Button tone={issuer === undefined ? 'primary' : undefined} label="Sign in with a passkey" />
          </PasskeyForm>
        )}
      </div>
      <h2>Sign in with a link</h2>
      <p>
        Ask <Operator /> for a sign-in link, and open it in this browser within ten minutes.
      </p>
      <details class="fold">
        <summary>For the operator</summary>
        <div>
          <p>Create the link with this command:</p>
          <CommandBlock args={`developers sign-in-link ${developer ?? 'ID'}`} />
        </div>
      </details>
      {party !== undefined && (passkeys ?? 0) === 0 && (
        <p class="muted">Add a passkey once you’re signed in, and you won’t need a link again.</p>
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
      To create or roll a key of {project}, change an expiry or add a passkey, sign in again: it has been more than{' '}
      {RECENT_MINUTES} minutes. You can still <a href={SETTINGS}>view the settings and revoke keys</a>.
    </Notice>
  );
}
