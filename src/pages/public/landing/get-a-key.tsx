import type { VNode } from 'preact';
import { useContext } from 'preact/hooks';
import { FIRST_PLAN, type Plan } from '../../../limits/plans.js';
import type { PublicOptions } from '../context.js';
import { Button, Deployment, Operator, withoutScheme } from '../../parts/content/components.js';

const NEW_KEY = '/settings/keys/new';

type GetAKeyProps = Pick<PublicOptions, 'signInBy'>;

/** The way to a key in one press: the form, behind the sign-in that there is, or the person to write to. */
export function GetAKey({ signInBy }: GetAKeyProps): VNode {
  const { operatorContact } = useContext(Deployment);
  if (signInBy !== undefined) {
    const label = signInBy.signUp ? 'Get a key' : `Sign in with ${signInBy.name} to get a key`;
    return <Button href={NEW_KEY} tone="primary" label={label} />;
  }
  if (operatorContact === undefined) return <Button href="#key" tone="primary" label="Get a key" />;
  return <Button href={operatorContact} tone="primary" label={`Ask ${withoutScheme(operatorContact)} for a key`} />;
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
        <strong>Ask for access.</strong> Contact <Operator />. You get a link that signs you in to your project.
      </>
    );
  }
  const { signUp, name } = signInBy;
  const plan = plans?.find(({ id }) => id === FIRST_PLAN);
  const signIn = <a href={NEW_KEY}>Sign in with {name}</a>;
  return signUp ? (
    <>
      <strong>{signIn}</strong> and name your project.{plan !== undefined && ` It starts on the ${plan.name} plan.`}
    </>
  ) : (
    <>
      <strong>{signIn}.</strong> The first time, you get two lines that identify you. Send them to <Operator />, who
      links you to a project.
    </>
  );
}
