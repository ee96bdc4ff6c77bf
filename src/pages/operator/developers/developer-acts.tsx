import type { VNode } from 'preact';
import { nobody } from '../../../admission/change-callers.js';
import { createSignInLink, LINK_LIFETIME_MINUTES, signInLinkUrl } from '../../../accounts/sign-in-links.js';
import { reinstateDeveloper, setDeveloperPlan, suspendDeveloper } from '../../../developers/developers.js';
import { setPlanOfKeys } from '../../../keys/edit-key.js';
import { listPlans } from '../../../limits/plans.js';
import { describeLimits } from '../../../limits/quotas.js';
import { formParser, Checkbox, CHECKBOX, Field, Form } from '../../parts/forms/form.js';
import { CodeBlock, Notice, UserText } from '../../parts/content/components.js';
import { PageError } from '../../parts/frame/error-page.js';
import { redirectAndConfirm } from '../../parts/frame/notices.js';
import { performAct } from '../acts.js';
import type { PageRouter } from '../../parts/context.js';
import type { OperatorParts } from '../context.js';
import { operatorPage } from '../layout.js';
import { developerOf, developerPath, trailTo } from './developer.js';
import { DEVELOPERS } from './developers.js';

const parsePlan = formParser({
  plan: { schema: { pattern: '^[a-z][a-z0-9_-]{0,31}$' } },
  keys: CHECKBOX,
});

/** Adds what an operator does with a developer: a sign-in link, a plan, suspending and reinstating. */
export function addDeveloperActs(router: PageRouter, parts: OperatorParts): void {
  const { db, config, publicUrl } = parts;
  const path = `${DEVELOPERS}/:id`;

  router.post(`${path}/sign-in-link`, async (ctx) => {
    const developer = await developerOf(ctx, db);
    if (!config.site)
      throw new PageError(404, 'Not found', 'There are no developer settings to sign in to: SITE is off.');
    const act = { act: 'create_sign_in_link', developer: developer.id };
    const create = (): Promise<string> => createSignInLink(db, developer.id);
    const token = await performAct(ctx, parts, act, create, nobody);
    const url = signInLinkUrl(publicUrl(), token);
    operatorPage(
      ctx,
      { title: 'Sign-in link created', tab: 'developers', trail: trailTo(developer) },
      <>
        <Notice tone="warning" role="status">
          <strong>Send this link to the developer in private.</strong> The first person to open it is signed in. It
          works once, within {LINK_LIFETIME_MINUTES} minutes, and is not shown again.
        </Notice>
        <div data-secret>
          <CodeBlock label="Sign-in link" code={url} isSecret />
        </div>
      </>,
    );
  });

  router.get(`${path}/plan`, async (ctx) => {
    const developer = await developerOf(ctx, db);
    const { id, planId, projectName } = developer;
    const plans = await listPlans(db);
    operatorPage(
      ctx,
      { title: 'Change the plan', tab: 'developers', trail: trailTo(developer) },
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
      </>,
    );
  });

  router.post(`${path}/plan`, async (ctx) => {
    const { id } = await developerOf(ctx, db);
    const { plan, keys } = parsePlan(ctx).values;
    const movesKeys = keys === 'on';
    const moved = await performAct(
      ctx,
      parts,
      { act: movesKeys ? 'set_plan_and_move_keys' : 'set_plan', developer: id },
      () =>
        db.transaction(async (transaction) => {
          await setDeveloperPlan(transaction, id, plan);
          return movesKeys ? setPlanOfKeys(transaction, id, plan) : 0;
        }),
      movesKeys ? () => [id] : nobody,
    );
    redirectAndConfirm(ctx, developerPath(id), moved === 0 ? 'plan_changed' : 'plans_changed');
  });

  for (const { name, verb, act, explanation, tone, done } of STATE_CHANGES) {
    router.get(`${path}/${name}`, async (ctx) => {
      const developer = await developerOf(ctx, db);
      const { id, projectName } = developer;
      operatorPage(
        ctx,
        { title: `${verb} the developer`, tab: 'developers', trail: trailTo(developer) },
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

    router.post(`${path}/${name}`, async (ctx) => {
      const { id } = await developerOf(ctx, db);
      const details = { act: name, developer: id };
      const change = (): Promise<unknown> => act(db, id);
      await performAct(ctx, parts, details, change, () => [id]);
      redirectAndConfirm(ctx, developerPath(id), done);
    });
  }
}

/** What changes whether a developer's keys are accepted. */
const STATE_CHANGES = [
  {
    name: 'suspend',
    verb: 'Suspend',
    act: suspendDeveloper,
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
    act: reinstateDeveloper,
    explanation: (project: VNode) => (
      <>The keys of {project} will be accepted again, except revoked and expired ones.</>
    ),
    tone: 'primary',
    done: 'reinstated',
  },
] as const;
