import type { VNode } from 'preact';
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

/** The way from nothing to a key in the environment, as this deployment has it. */
export function KeySteps({ signInBy }: GetAKeyProps): VNode {
  return (
    <ol class="steps">
      <li>
        <Access signInBy={signInBy} />
      </li>
      <li>
        <strong>Create a key</strong> in your <a href={NEW_KEY}>settings</a>, and copy it: it is shown only once.
      </li>
      <li>
        <strong>Put it in your environment.</strong> In a shell, run <code>read -rs KEY &amp;&amp; export KEY</code>,
        paste the key and press Enter. This keeps it out of your shell history.
      </li>
    </ol>
  );
}

function Access({ signInBy }: GetAKeyProps): VNode {
  if (signInBy === undefined) {
    return (
      <>
        <strong>Ask for access.</strong> Contact <Operator showsAddress />. You get a link that signs you in to your
        project.
      </>
    );
  }
  const { signUp, provider } = signInBy;
  const signIn = <a href={NEW_KEY}>Sign in with {provider.host}</a>;
  return signUp ? (
    <>
      <strong>{signIn}</strong> and name your project. It starts on the Free plan.
    </>
  ) : (
    <>
      <strong>{signIn}.</strong> The first time, you get two lines that identify you. Send them to{' '}
      <Operator showsAddress />, who links you to a project.
    </>
  );
}
