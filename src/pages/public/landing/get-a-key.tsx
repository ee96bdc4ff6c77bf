import type { VNode } from 'preact';
import { FIRST_PLAN, type Plan } from '../../../limits/plans.js';
import type { PublicOptions } from '../context.js';
import { Operator } from '../../parts/content/components.js';

const NEW_KEY = '/settings/keys/new';

interface GetAKeyProps {
  readonly signInBy: PublicOptions['signInBy'];
}

/** @returns where "Get a key" leads: to the form where everybody can sign in, else to how to get access */
export function keyAddress({ signInBy }: GetAKeyProps): string {
  return signInBy?.signUp === true ? NEW_KEY : '#key';
}

interface KeyStepsProps extends GetAKeyProps {
  /** Undefined while the database is down. */
  readonly plans: readonly Plan[] | undefined;
}

/** The way from nothing to a key in the environment, as this deployment has it. */
export function KeySteps({ signInBy, plans }: KeyStepsProps): VNode {
  return (
    <ol class="steps">
      <li>
        <Access signInBy={signInBy} plans={plans} />
      </li>
      <li>
        <strong>Create a key</strong> in your <a href={NEW_KEY}>settings</a>, and copy it: it is shown only once.
      </li>
      <li>
        <strong>Put it in your environment.</strong> In a shell, run{' '}
        <code>read -rs CATALOG_API_KEY &amp;&amp; export CATALOG_API_KEY</code>, paste the key and press Enter. This
        keeps it out of your shell history.
      </li>
    </ol>
  );
}

function Access({ signInBy, plans }: KeyStepsProps): VNode {
  if (signInBy === undefined) {
    return (
      <>
        <strong>Ask for access.</strong> Contact <Operator showsAddress />. You get a link that signs you in to your
        project.
      </>
    );
  }
  const { signUp, provider } = signInBy;
  const plan = plans?.find(({ id }) => id === FIRST_PLAN);
  const signIn = <a href={NEW_KEY}>Sign in with {provider.host}</a>;
  return signUp ? (
    <>
      <strong>{signIn}</strong> and name your project.{plan !== undefined && ` It starts on the ${plan.name} plan.`}
    </>
  ) : (
    <>
      <strong>{signIn}.</strong> The first time, you get two lines that identify you. Send them to{' '}
      <Operator showsAddress />, who links you to a project.
    </>
  );
}
