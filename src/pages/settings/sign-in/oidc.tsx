import type { Knex } from 'knex';
import type { VNode } from 'preact';
import {
  beginSignUp,
  findDeveloperOf,
  PROVIDER_SIGN_IN_SECONDS,
  SIGN_UP_LIFETIME_MINUTES,
  spendProviderSignIn,
  endSignUp,
  findSignUp,
  linkIdentity,
  type Identity,
} from '../../../accounts/identities.js';
import { ClientRefused, ProviderUnavailable, SignInRefused } from '../../../accounts/oidc-provider.js';
import { createDeveloper } from '../../../developers/developers.js';
import { OperatorError } from '../../../errors.js';
import { setActor } from '../../../events/events.js';
import { clientAddress } from '../../../http/request/client-address.js';
import { boundConcurrency } from '../../../http/request/concurrency.js';
import { FIRST_PLAN } from '../../../limits/plans.js';
import { isPlainText } from '../../../platform/text/plain-text.js';
import { Button, CodeBlock, CommandBlock, Operator } from '../../parts/content/components.js';
import type { PageContext, PageRouter, SiteParts } from '../../parts/context.js';
import { readPlanNames } from '../../parts/content/plan-name.js';
import { act, type Done } from '../../parts/forms/act.js';
import { formParser, ErrorSummary, Form, type Submission } from '../../parts/forms/form.js';
import { ProjectName, PROJECT_NAME_FIELD } from '../../parts/forms/project-name.js';
import { PageError } from '../../parts/frame/error-page.js';
import { page } from '../../parts/frame/page.js';
import { queryOf, seeOther } from '../../parts/web/addresses.js';
import { returnTo } from './return-to.js';
import { readCookie, setCookie } from '../../parts/web/cookies.js';
import { signIn, tooManyAttempts } from './sign-in-link.js';

/** Where the provider redirects the browser: to be registered there, under PUBLIC_URL. */
export const OIDC_CALLBACK = '/sign-in/oidc/callback';

/** How many sign-ins may wait for a provider that does not respond. Further ones are refused. */
const WAITING = { running: 20, waiting: 0, perAddress: 10, perWindow: 10 };

/** The longest subject that OpenID Connect allows and the database stores, in characters. */
const MAX_SUBJECT = 255;

/**
 * Adds sign-in with an identity provider. It starts with a link, since the content security policy blocks a form that
 * redirects to another origin.
 */
export function addOidc(router: PageRouter, parts: SiteParts): void {
  const { db, site, trustedProxies } = parts;
  const { signInBy, failedSignIns } = site;
  if (signInBy === undefined) return;
  const { provider } = signInBy;
  const bounded = boundConcurrency(WAITING, trustedProxies);

  router.get('/sign-in/oidc', async (ctx) => {
    const begin = async (): Promise<void> => {
      const { secret, url } = await translated(provider.begin());
      setCookie(ctx, 'oidc', secret, PROVIDER_SIGN_IN_SECONDS);
      seeOther(ctx, url.href);
    };
    await (provider.isDiscovered ? begin() : bounded(ctx, begin));
  });

  /** Requests the identity from the provider, and counts a failure. */
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
    if (secret === undefined || !provider.isReturn(secret, search)) throw refusal(new SignInRefused());
    const address = clientAddress(ctx.req, trustedProxies);
    const attempt = await failedSignIns.check(address);
    if (attempt.kind === 'over_limit') throw tooManyAttempts(attempt.state.resetSeconds);
    await bounded(ctx, async () => {
      const identity = await translated(identify(address, secret, search));
      requireStorable(identity);
      if (await signIn(ctx, parts, 'provider', (transaction) => findDeveloperOf(transaction, identity))) returnTo(ctx);
      else if (signInBy.signUp) {
        setCookie(ctx, 'sign-up', await beginSignUp(db, identity), SIGN_UP_LIFETIME_MINUTES * 60);
        seeOther(ctx, '/sign-up');
      } else showUnlinked(ctx, identity);
    });
  });
}

/** Turns an error into one for the person who signs in. The reason goes to the log. */
async function translated<T>(result: Promise<T>): Promise<T> {
  try {
    return await result;
  } catch (error) {
    if (error instanceof SignInRefused) throw refusal(error);
    if (error instanceof ClientRefused) {
      throw new PageError(
        500,
        'Sign-in is not set up correctly',
        <>
          Your sign-in provider does not accept this service. Report it to <Operator />. Your keys are not affected.
        </>,
        {},
        error,
      );
    }
    if (!(error instanceof ProviderUnavailable)) throw error;
    throw new PageError(
      503,
      'Your provider is not responding',
      'Your sign-in provider is not responding correctly. Try again in a minute. Your keys are not affected.',
      { 'Retry-After': '60' },
      error,
    );
  }
}

function refusal({ message }: SignInRefused): PageError {
  return new PageError(403, 'Sign-in failed', message);
}

/** Operators type the subject on the command line, which accepts the same characters. @throws PageError 403 */
function requireStorable({ subject }: Identity): void {
  const isShort = subject !== '' && Array.from(subject).length <= MAX_SUBJECT;
  if (isShort && isPlainText(subject) && subject.trim() === subject) return;
  throw new PageError(
    403,
    'This identity is not supported',
    <>
      The subject that your provider uses to identify you is empty, longer than {MAX_SUBJECT} characters, or contains
      control characters or leading or trailing spaces. Ask <Operator /> for a sign-in link instead.
    </>,
  );
}

function showUnlinked(ctx: PageContext, { issuer, subject }: Identity): void {
  page(
    ctx,
    { title: 'Your identity is not linked yet', section: 'settings', status: 403, isCard: true },
    <>
      <p>
        You signed in with your provider, but your identity is not linked to a project on this service. Send these two
        lines to <Operator />, and sign in again once they have linked it.
      </p>
      <CodeBlock label="Your identity" code={`Issuer:  ${issuer}\nSubject: ${subject}`} />
      <p>The operator runs this command:</p>
      <CommandBlock args={`developers link ID --issuer ${quoted(issuer)} --subject ${quoted(subject)}`} />
      <p>
        <Button href="/sign-in" label="Sign in again" />
      </p>
    </>,
  );
}

/** Quotes a text of the provider for a shell. */
function quoted(text: string): string {
  return /^[\w./:@-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

const parseSignUp = formParser(PROJECT_NAME_FIELD);

/** Adds the form in which a new identity names its project, which makes it a developer on the default plan. */
export function addSignUp(router: PageRouter, parts: SiteParts): void {
  const { db, site } = parts;
  if (site.signInBy?.signUp !== true) return;

  const draw = async (ctx: PageContext, submission: Submission<'project_name'>): Promise<void> => {
    const plan = (await readPlanNames(db)).get(FIRST_PLAN) ?? FIRST_PLAN;
    const status = submission.errors.project_name === undefined ? 200 : 422;
    const body = <SignUpPage plan={plan} submission={submission} />;
    page(ctx, { title: 'Name your project', section: 'settings', status, isCard: true }, body);
  };

  router.get('/sign-up', async (ctx) => {
    const identity = await findSignUp(db, readCookie(ctx, 'sign-up'));
    if (identity === undefined) seeOther(ctx, '/sign-in');
    else await draw(ctx, { values: { project_name: queryOf(ctx).get('project_name') ?? '' }, errors: {} });
  });

  const signUp = async (ctx: PageContext, { values }: Submission<'project_name'>): Promise<Done | undefined> => {
    const isSignedIn = await signIn(ctx, parts, 'provider', async (transaction) => {
      const identity = await endSignUp(transaction, readCookie(ctx, 'sign-up'));
      return identity && register(transaction, identity, values.project_name);
    });
    setCookie(ctx, 'sign-up', undefined);
    if (!isSignedIn) return { to: '/sign-in' };
    returnTo(ctx);
    return undefined;
  };

  router.post('/sign-up', act(parseSignUp, signUp, draw));
}

/**
 * Creates the developer, unless another tab of the same person has done so.
 *
 * @returns the developer's id
 * @throws PageError 409 when another tab does so at the same time
 */
async function register(transaction: Knex.Transaction, identity: Identity, projectName: string): Promise<number> {
  const known = await findDeveloperOf(transaction, identity);
  if (known !== undefined) return known;
  await setActor(transaction, 'developer');
  const { id } = await createDeveloper(transaction, { projectName, attributionRequired: false });
  await linkIdentity(transaction, id, identity).catch((error: unknown) => {
    if (!(error instanceof OperatorError)) throw error;
    throw new PageError(409, 'Already signed up', 'You created your project in another window. Sign in again.');
  });
  return id;
}

interface SignUpProps {
  /** The name of the plan that the project starts on. */
  readonly plan: string;
  readonly submission: Submission<'project_name'>;
}

function SignUpPage({ plan, submission }: SignUpProps): VNode {
  return (
    <>
      <ErrorSummary errors={submission.errors} />
      <p>
        Welcome. Your keys belong to a project, which starts on the {plan} plan. Its name appears in responses from{' '}
        <code>/api/v1/me</code>.
      </p>
      <Form action="/sign-up" label="Create project">
        <ProjectName submission={submission} autocomplete="organization" />
      </Form>
    </>
  );
}
