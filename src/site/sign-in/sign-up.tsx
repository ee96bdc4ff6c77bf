import type { Knex } from 'knex';
import type { VNode } from 'preact';
import { endSignUp, findDeveloperOf, findSignUp, linkIdentity, type Identity } from '../../accounts/identities.js';
import { createDeveloper } from '../../developers/developers.js';
import { setActor } from '../../events/events.js';
import { OperatorError } from '../../errors.js';
import type { PageContext, PageRouter, SiteParts } from '../context.js';
import { formOf } from '../delivery/form.js';
import { PageError } from '../layout/error-page.js';
import { described, Field } from '../layout/form-field.js';
import { page } from '../layout/page.js';
import { isPlainText, NOT_PLAIN } from '../../platform/text/plain-text.js';
import { returnTo, seeOther } from './return-to.js';
import { readCookie, setCookie } from './cookies.js';
import { signIn } from './sign-in-link.js';

/** As the database has it. */
const MAX_NAME = 200;

/** Adds the form in which a new identity names its project. It becomes a developer on the default plan. */
export function addSignUp(router: PageRouter, { db, site }: SiteParts): void {
  if (site.signInBy?.signUp !== true) return;

  router.get('/sign-up', async (ctx) => {
    const identity = await findSignUp(db, readCookie(ctx, 'sign-up'));
    if (identity === undefined) seeOther(ctx, '/sign-in');
    else show(ctx, 200, <SignUpBody name="" error={undefined} />);
  });

  router.post('/sign-up', async (ctx) => {
    const name = (formOf(ctx).get('project_name') ?? '').trim();
    const error = errorIn(name);
    if (error !== undefined) {
      show(ctx, 422, <SignUpBody name={name.slice(0, MAX_NAME)} error={error} />);
      return;
    }
    const isSignedIn = await signIn(ctx, db, async (transaction) => {
      const identity = await endSignUp(transaction, readCookie(ctx, 'sign-up'));
      return identity && register(transaction, identity, name);
    }).catch((error: unknown) => {
      throw error instanceof OperatorError ? signedUpMeanwhile() : error;
    });
    setCookie(ctx, 'sign-up', undefined);
    if (isSignedIn) returnTo(ctx);
    else seeOther(ctx, '/sign-in');
  });
}

/** Makes the developer, unless another tab of the same person has done so. @returns the developer's id */
async function register(transaction: Knex.Transaction, identity: Identity, projectName: string): Promise<number> {
  const known = await findDeveloperOf(transaction, identity);
  if (known !== undefined) return known;
  await setActor(transaction, 'developer');
  const { id } = await createDeveloper(transaction, { projectName, attributionRequired: false });
  await linkIdentity(transaction, id, identity);
  return id;
}

/** @returns what is wrong with a name; undefined for nothing */
function errorIn(name: string): string | undefined {
  // Characters as PostgreSQL counts them.
  const { length } = Array.from(name);
  if (length < 1 || length > MAX_NAME) return `Give your project a name of 1 to ${MAX_NAME} characters.`;
  return isPlainText(name) ? undefined : NOT_PLAIN;
}

function show(ctx: PageContext, status: number, body: VNode): void {
  page(ctx, { title: 'Name your project', section: 'settings', status }, body);
}

function SignUpBody({ name, error }: { readonly name: string; readonly error: string | undefined }): VNode {
  return (
    <div class="container">
      <h1>Name your project</h1>
      <p>
        You are new here. Your keys belong to a project, on the free plan. Its name shows in the answers of{' '}
        <code>/api/v1/me</code>.
      </p>
      <form class="form" method="post" action="/sign-up">
        <Field id="project-name" label="Project name" error={error}>
          <input
            class="input"
            id="project-name"
            name="project_name"
            required
            maxLength={MAX_NAME}
            autocomplete="organization"
            value={name}
            {...described('project-name', { hint: false, error })}
          />
        </Field>
        <div class="form-actions">
          <button class="button button-primary" type="submit">
            Create the project
          </button>
        </div>
      </form>
    </div>
  );
}

function signedUpMeanwhile(): PageError {
  return new PageError(409, 'Signed up already', 'You have named a project in another window. Sign in again.');
}
