import type { Knex } from 'knex';
import { endSignUp, findDeveloperOf, findSignUp, linkIdentity, type Identity } from '../../../accounts/identities.js';
import { createDeveloper } from '../../../developers/developers.js';
import { setActor } from '../../../events/events.js';
import { OperatorError } from '../../../errors.js';
import type { PageContext, PageRouter, SiteParts } from '../../parts/context.js';
import { formParser, type Submission } from '../../parts/forms/form.js';
import { queryOf } from '../../parts/web/page-address.js';
import { PageError } from '../../parts/frame/error-page.js';
import { ErrorSummary, Form } from '../../parts/forms/form-elements.js';
import { page } from '../../parts/frame/page.js';
import { ProjectName, PROJECT_NAME_FIELD } from '../../parts/forms/project-name.js';
import { returnTo, seeOther } from '../../parts/web/return-to.js';
import { readCookie, setCookie } from '../../parts/web/cookies.js';
import { signIn } from './sign-in-link.js';

const parseSignUp = formParser(PROJECT_NAME_FIELD);

/** Adds the form in which a new identity names its project, which makes it a developer on the default plan. */
export function addSignUp(router: PageRouter, { db, site }: SiteParts): void {
  if (site.signInBy?.signUp !== true) return;

  router.get('/sign-up', async (ctx) => {
    const identity = await findSignUp(db, readCookie(ctx, 'sign-up'));
    if (identity === undefined) seeOther(ctx, '/sign-in');
    else showForm(ctx, { values: { project_name: queryOf(ctx).get('project_name') ?? '' }, errors: {} });
  });

  router.post('/sign-up', async (ctx) => {
    const submission = parseSignUp(ctx);
    if (submission.errors.project_name !== undefined) {
      showForm(ctx, submission);
      return;
    }
    const isSignedIn = await signIn(ctx, db, 'provider', async (transaction) => {
      const identity = await endSignUp(transaction, readCookie(ctx, 'sign-up'));
      return identity && register(transaction, identity, submission.values.project_name);
    }).catch((error: unknown) => {
      if (!(error instanceof OperatorError)) throw error;
      throw new PageError(409, 'Already signed up', 'You created your project in another window. Sign in again.');
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

function showForm(ctx: PageContext, submission: Submission<'project_name'>): void {
  const error = submission.errors.project_name;
  page(
    ctx,
    { title: 'Name your project', section: 'settings', status: error === undefined ? 200 : 422 },
    <>
      <ErrorSummary errors={submission.errors} />
      <p>
        Welcome. Your keys belong to a project, which starts on the free plan. Its name appears in responses from{' '}
        <code>/api/v1/me</code>.
      </p>
      <Form action="/sign-up" label="Create project">
        <ProjectName submission={submission} autocomplete="organization" />
      </Form>
    </>,
  );
}
