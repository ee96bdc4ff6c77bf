import type { VNode } from 'preact';
import { beginSignUp, findDeveloperOf, SIGN_UP_LIFETIME_MINUTES, type Identity } from '../../accounts/identities.js';
import { ProviderUnavailable, SignInRefused } from '../../accounts/oidc-provider.js';
import type { PageRouter, SiteParts } from '../context.js';
import { CodeBlock } from '../layout/components.js';
import { PageError } from '../layout/error-page.js';
import { page } from '../layout/page.js';
import { comeBack, seeOther } from './come-back.js';
import { readCookie, setCookie } from './cookies.js';
import { OIDC_CALLBACK } from './oidc-paths.js';
import { signIn } from './sign-in-link.js';

/** How long a sign-in at the provider may take, in seconds. */
const SIGN_IN_SECONDS = 600;

/**
 * Adds signing in by a provider of identities. It begins with a link, since the content security policy keeps a form from
 * leading to another origin. These routes wait for the provider.
 */
export function addOidc(router: PageRouter, { db, site }: SiteParts): void {
  const { signInBy } = site;
  if (signInBy === undefined) return;

  router.get('/sign-in/oidc', async (ctx) => {
    const { secret, url } = await translated(() => signInBy.provider.begin());
    setCookie(ctx, 'oidc', secret, SIGN_IN_SECONDS);
    seeOther(ctx, url.href);
  });

  router.get(OIDC_CALLBACK, async (ctx) => {
    const secret = readCookie(ctx, 'oidc');
    setCookie(ctx, 'oidc', undefined);
    const identity = await translated(() => signInBy.provider.finish(secret, ctx.state.target.search));
    if (await signIn(ctx, db, (transaction) => findDeveloperOf(transaction, identity))) comeBack(ctx);
    else if (signInBy.signUp) {
      setCookie(ctx, 'sign-up', await beginSignUp(db, identity), SIGN_UP_LIFETIME_MINUTES * 60);
      seeOther(ctx, '/sign-up');
    } else page(ctx, { title: 'Not known here', section: 'settings', status: 403 }, <Unknown identity={identity} />);
  });
}

/** Says what an error means for the person who signs in. The log gets the reason. */
async function translated<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof SignInRefused) throw refused();
    if (error instanceof ProviderUnavailable) throw unavailable(error);
    throw error;
  }
}

function Unknown({ identity: { issuer, subject } }: { readonly identity: Identity }): VNode {
  return (
    <div class="container">
      <h1>You are not known here yet</h1>
      <p>
        You have signed in at your provider, and no developer of this service belongs to that identity. Send these two
        lines to the operator of this service, and sign in again when you are linked.
      </p>
      <CodeBlock label="Your identity" code={`Issuer:  ${issuer}\nSubject: ${subject}`} />
      <p>For the operator:</p>
      <CodeBlock
        label="Command"
        code={`catalog developers link ID --issuer ${quoted(issuer)} --subject ${quoted(subject)}`}
      />
      <p>
        <a class="button" href="/sign-in">
          Sign in again
        </a>
      </p>
    </div>
  );
}

/** As a shell takes it, since the provider has chosen it. */
function quoted(text: string): string {
  return /^[\w./:@-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

function refused(): PageError {
  return new PageError(
    403,
    'Not signed in',
    'Your provider did not sign you in, it took too long, or it began in another browser. Open the sign-in page and try again.',
  );
}

function unavailable(cause: ProviderUnavailable): PageError {
  return new PageError(
    503,
    'Your provider does not answer',
    'The provider that you sign in with does not answer, or not as it should. Try again in a minute. Your keys work all the while.',
    { 'Retry-After': '60' },
    cause,
  );
}
