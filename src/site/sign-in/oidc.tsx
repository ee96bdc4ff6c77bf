import type { VNode } from 'preact';
import {
  beginSignUp,
  findDeveloperOf,
  PROVIDER_SIGN_IN_SECONDS,
  SIGN_UP_LIFETIME_MINUTES,
  spendProviderSignIn,
  type Identity,
} from '../../accounts/identities.js';
import { ProviderUnavailable, SignInRefused } from '../../accounts/oidc-provider.js';
import { isPlainText } from '../../platform/text/plain-text.js';
import { clientAddress } from '../../http/request/client-address.js';
import { boundConcurrency } from '../../http/request/concurrency.js';
import type { PageContext, PageRouter, SiteParts } from '../context.js';
import { CodeBlock } from '../layout/components.js';
import { PageError } from '../layout/error-page.js';
import { page } from '../layout/page.js';
import { returnTo, seeOther } from './return-to.js';
import { readCookie, setCookie } from './cookies.js';
import { OIDC_CALLBACK } from './oidc-paths.js';
import { signIn, tooManyAttempts } from './sign-in-link.js';

/** How many sign-ins wait for the provider at the same time, also while it does not answer. Further ones are refused. */
const WAITING = { running: 20, waiting: 0, ofOneAddress: 5 };

/** The most characters that OpenID Connect allows, and the database takes. */
const MAX_SUBJECT = 255;

/**
 * Adds signing in by a provider of identities. It begins with a link, since the content security policy keeps a form from
 * leading to another origin. These routes wait for the provider.
 */
export function addOidc(router: PageRouter, { db, site, trustedProxies }: SiteParts): void {
  const { signInBy, failedSignIns } = site;
  if (signInBy === undefined) return;
  const { provider } = signInBy;
  const bounded = boundConcurrency(WAITING);
  const addressOf = ({ req }: PageContext): string => clientAddress(req, trustedProxies);

  router.get('/sign-in/oidc', async (ctx) => {
    const begin = async (): Promise<void> => {
      const { secret, url } = await translated(provider.begin());
      setCookie(ctx, 'oidc', secret, PROVIDER_SIGN_IN_SECONDS);
      seeOther(ctx, url.href);
    };
    await (provider.isDiscovered ? begin() : bounded(ctx.state, addressOf(ctx), begin));
  });

  /** Asks the provider who comes back, and counts a failure. */
  async function identify(address: string, secret: string, answer: URLSearchParams): Promise<Identity> {
    try {
      if (!(await spendProviderSignIn(db, secret))) throw new SignInRefused();
      return await provider.finish(secret, answer);
    } catch (error) {
      await failedSignIns.count(address);
      throw error;
    }
  }

  router.get(OIDC_CALLBACK, async (ctx) => {
    const secret = readCookie(ctx, 'oidc');
    setCookie(ctx, 'oidc', undefined);
    const { search } = ctx.state.target;
    if (secret === undefined || !provider.isReturn(secret, search)) throw refused(new SignInRefused());
    const address = addressOf(ctx);
    const attempt = await failedSignIns.check(address);
    if (attempt.kind === 'over_limit') throw tooManyAttempts(attempt.standing.resetSeconds);
    await bounded(ctx.state, address, async () => {
      const identity = await translated(identify(address, secret, search));
      requireStorable(identity);
      if (await signIn(ctx, db, (transaction) => findDeveloperOf(transaction, identity))) returnTo(ctx);
      else if (signInBy.signUp) {
        setCookie(ctx, 'sign-up', await beginSignUp(db, identity), SIGN_UP_LIFETIME_MINUTES * 60);
        seeOther(ctx, '/sign-up');
      } else page(ctx, { title: 'Not known here', section: 'settings', status: 403 }, <Unknown identity={identity} />);
    });
  });
}

/** Says what an error means for the person who signs in. The log gets the reason. */
async function translated<T>(result: Promise<T>): Promise<T> {
  try {
    return await result;
  } catch (error) {
    if (error instanceof SignInRefused) throw refused(error);
    if (error instanceof ProviderUnavailable) throw unavailable(error);
    throw error;
  }
}

/** The operator types the subject on the command line, which takes the same characters. @throws PageError 403 */
function requireStorable({ subject }: Identity): void {
  if (Array.from(subject).length <= MAX_SUBJECT && isPlainText(subject) && subject.trim() === subject) return;
  throw new PageError(
    403,
    'Your identity cannot be used here',
    `Your provider identifies you by a subject that has more than ${MAX_SUBJECT} characters, or control characters or spaces around it. Ask the operator of this service for a sign-in link.`,
  );
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

function refused({ message }: SignInRefused): PageError {
  return new PageError(403, 'Not signed in', message);
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
