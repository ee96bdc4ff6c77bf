import type { Knex } from 'knex';
import type { VNode } from 'preact';
import { endSignUp, findDeveloperOf, findSignUp, linkIdentity, type Identity } from '../../accounts/identities.js';
import { createDeveloper } from '../../developers/developers.js';
import { setActor } from '../../events/events.js';
import { OperatorError } from '../../errors.js';
import type { PageContext, PageRouter, SiteParts } from '../context.js';
import { formParser } from '../delivery/form.js';
import { PageError } from '../layout/error-page.js';
import { described, Field } from '../layout/form-field.js';
import { page } from '../layout/page.js';
import { returnTo, seeOther } from './return-to.js';
import { readCookie, setCookie } from './cookies.js';
import { signIn } from './sign-in-link.js';

/** As the database has it, in characters. */
const MAX_NAME = 200;

const parseSignUp = formParser({
  project_name: {
    schema: { minLength: 1, maxLength: MAX_NAME, format: 'plain-text' },
    message: `Enter a name of 1 to ${MAX_NAME} characters, without line breaks or other control characters.`,
  },
});

/** Adds the form in which a new identity names its project, which makes it a developer on the default plan. */
export function addSignUp(router: PageRouter, { db, site }: SiteParts): void {
  if (site.signInBy?.signUp !== true) return;

  router.get('/sign-up', async (ctx) => {
    const identity = await findSignUp(db, readCookie(ctx, 'sign-up'));
    if (identity === undefined) seeOther(ctx, '/sign-in');
    else show(ctx, 200, <SignUpBody name="" error={undefined} />);
  });

  router.post('/sign-up', async (ctx) => {
    const { values, errors } = parseSignUp(ctx);
    const name = values.project_name;
    if (errors.project_name !== undefined) {
      show(ctx, 422, <SignUpBody name={name.slice(0, MAX_NAME)} error={errors.project_name} />);
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

/** Creates the developer, unless another tab of the same person has done so. @returns the developer's id */
async function register(transaction: Knex.Transaction, identity: Identity, projectName: string): Promise<number> {
  const known = await findDeveloperOf(transaction, identity);
  if (known !== undefined) return known;
  await setActor(transaction, 'developer');
  const { id } = await createDeveloper(transaction, { projectName, attributionRequired: false });
  await linkIdentity(transaction, id, identity);
  return id;
}

function show(ctx: PageContext, status: number, body: VNode): void {
  page(ctx, { title: 'Name your project', section: 'settings', status }, body);
}

function SignUpBody({ name, error }: { readonly name: string; readonly error: string | undefined }): VNode {
  return (
    <div class="container">
      <h1>Name your project</h1>
      <p>
        Welcome. Your keys belong to a project, which starts on the free plan. Responses of <code>/api/v1/me</code>{' '}
        include its name.
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
            Create project
          </button>
        </div>
      </form>
    </div>
  );
}

function signedUpMeanwhile(): PageError {
  return new PageError(409, 'Already signed up', 'You created your project in another window. Sign in again.');
}
