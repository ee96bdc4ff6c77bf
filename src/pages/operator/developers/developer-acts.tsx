import type { VNode } from 'preact';
import { nobody } from '../../../admission/change-callers.js';
import { createSignInLink, LINK_LIFETIME_MINUTES, signInLinkUrl } from '../../../accounts/sign-in-links.js';
import {
  reinstateDeveloper,
  setDeveloperPlan,
  suspendDeveloper,
  type Developer,
} from '../../../developers/developers.js';
import { setPlanOfKeys } from '../../../keys/edit-key.js';
import { listPlans, type Plan } from '../../../limits/plans.js';
import { describeLimits } from '../../../limits/quotas.js';
import { act, type Done } from '../../parts/forms/act.js';
import { formParser, Checkbox, CHECKBOX, Field, Form, type Submission } from '../../parts/forms/form.js';
import { CodeBlock, Notice, UserText } from '../../parts/content/components.js';
import { PageError } from '../../parts/frame/error-page.js';
import { redirectAndConfirm } from '../../parts/frame/notices.js';
import { performAct } from '../acts.js';
import type { PageContext, PageRouter } from '../../parts/context.js';
import type { OperatorParts } from '../context.js';
import { developerOf, developerPath, pageOfDeveloper } from './developer.js';
import { DEVELOPERS } from './developers.js';

const parsePlan = formParser({
  plan: { schema: { pattern: '^[a-z][a-z0-9_-]{0,31}$' } },
  keys: CHECKBOX,
});

const PATH = `${DEVELOPERS}/:id`;

/** Adds the operator's acts on a developer: a sign-in link, a plan, suspending and reinstating. */
export function addDeveloperActs(router: PageRouter, parts: OperatorParts): void {
  addSignInLink(router, parts);
  addChangeOfPlan(router, parts);
  for (const change of STATE_CHANGES) addStateChange(router, parts, change);
}

function addSignInLink(router: PageRouter, parts: OperatorParts): void {
  const { db, config, publicUrl } = parts;
  router.post(`${PATH}/sign-in-link`, async (ctx) => {
    const developer = await developerOf(ctx, db);
    if (!config.site)
      throw new PageError(404, 'Not found', 'There are no developer settings to sign in to: SITE is off.');
    const details = { act: 'create_sign_in_link', developer: developer.id };
    const create = (): Promise<string> => createSignInLink(db, developer.id);
    const token = await performAct(ctx, parts, details, create, nobody);
    const url = signInLinkUrl(publicUrl(), token);
    pageOfDeveloper(ctx, developer, 'Sign-in link created', <SignInLinkPage url={url} />);
  });
}

function SignInLinkPage({ url }: { readonly url: string }): VNode {
  return (
    <>
      <Notice tone="warning" role="status">
        <strong>Send this link to the developer in private.</strong> The first person to open it is signed in. It works
        once, within {LINK_LIFETIME_MINUTES} minutes, and is not shown again.
      </Notice>
      <div data-secret>
        <CodeBlock label="Sign-in link" code={url} isSecret />
      </div>
    </>
  );
}

function addChangeOfPlan(router: PageRouter, parts: OperatorParts): void {
  const { db } = parts;
  const path = `${PATH}/plan`;

  router.get(path, async (ctx) => {
    const [developer, plans] = await Promise.all([developerOf(ctx, db), listPlans(db)]);
    pageOfDeveloper(ctx, developer, 'Change the plan', <PlanForm developer={developer} plans={plans} />);
  });

  const changePlan = async (ctx: PageContext, { values }: Submission<'plan' | 'keys'>): Promise<Done> => {
    const { id } = await developerOf(ctx, db);
    const movesKeys = values.keys === 'on';
    const moved = await performAct(
      ctx,
      parts,
      { act: movesKeys ? 'set_plan_and_move_keys' : 'set_plan', developer: id },
      () =>
        db.transaction(async (transaction) => {
          await setDeveloperPlan(transaction, id, values.plan);
          return movesKeys ? setPlanOfKeys(transaction, id, values.plan) : 0;
        }),
      movesKeys ? () => [id] : nobody,
    );
    return { to: developerPath(id), confirmation: moved === 0 ? 'plan_changed' : 'plans_changed' };
  };
  router.post(path, act(parsePlan, changePlan));
}

function PlanForm({
  developer: { id, planId, projectName },
  plans,
}: {
  readonly developer: Developer;
  readonly plans: readonly Plan[];
}): VNode {
  return (
    <>
      <p>
        Keys that <UserText text={projectName} /> creates from now on get this plan.
      </p>
      <Form action={`${developerPath(id)}/plan`} label="Save plan" cancel={developerPath(id)}>
        <Field
          name="plan"
          label="Plan"
          value={planId}
          options={plans.map((plan) => ({ value: plan.id, label: `${plan.name}: ${describeLimits(plan)}` }))}
        />
        <Checkbox name="keys" label="Move the developer’s active keys to this plan too" />
      </Form>
    </>
  );
}

function addStateChange(router: PageRouter, parts: OperatorParts, change: StateChange): void {
  const { db } = parts;
  const { name, verb, explanation, tone } = change;
  const path = `${PATH}/${name}`;

  router.get(path, async (ctx) => {
    const developer = await developerOf(ctx, db);
    const { id, projectName } = developer;
    pageOfDeveloper(
      ctx,
      developer,
      `${verb} the developer`,
      <>
        <p>{explanation(<UserText text={projectName} />)}</p>
        <Form
          action={`${developerPath(id)}/${name}`}
          label={`${verb} developer`}
          tone={tone}
          cancel={developerPath(id)}
        />
      </>,
    );
  });

  router.post(path, async (ctx) => {
    const { id } = await developerOf(ctx, db);
    const details = { act: name, developer: id };
    const perform = (): Promise<unknown> => change.perform(db, id);
    await performAct(ctx, parts, details, perform, () => [id]);
    redirectAndConfirm(ctx, developerPath(id), change.done);
  });
}

type StateChange = (typeof STATE_CHANGES)[number];

/** The acts that change whether a developer's keys are accepted. */
const STATE_CHANGES = [
  {
    name: 'suspend',
    verb: 'Suspend',
    perform: suspendDeveloper,
    explanation: (project: VNode) => (
      <>
        All keys of {project} will be refused with 401 until you reinstate the developer. They can still sign in to
        their settings, but not change anything there.
      </>
    ),
    tone: 'danger',
    done: 'suspended',
  },
  {
    name: 'reinstate',
    verb: 'Reinstate',
    perform: reinstateDeveloper,
    explanation: (project: VNode) => (
      <>The keys of {project} will be accepted again, except revoked and expired ones.</>
    ),
    tone: 'primary',
    done: 'reinstated',
  },
] as const;
