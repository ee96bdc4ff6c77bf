import type { ComponentChildren, VNode } from 'preact';
import type { Knex } from 'knex';
import { CHALLENGE_SECONDS, createChallenge, spendChallenge } from '../../../accounts/passkeys.js';
import { PasskeyRefused, relyingPartyOf, type RelyingParty } from '../../../accounts/relying-party.js';
import type { PageContext } from '../../parts/context.js';
import { formParser } from '../../parts/forms/form.js';
import { PageError } from '../../parts/frame/error-page.js';
import { readCookie, setCookie } from '../../parts/web/cookies.js';

/** Why the browser could not do it, by the name of its error; the last text is for every other error. */
const PROBLEMS = {
  create: {
    NotAllowedError: 'No passkey was created: you cancelled, or it took too long. Try again.',
    InvalidStateError: 'This device or password manager already has a passkey for your project.',
    ConstraintError:
      'This device cannot keep passkeys yet. Set up a PIN, a fingerprint or a screen lock, or choose another device.',
    other: 'No passkey was created. Reload the page and try again.',
  },
  get: {
    NotAllowedError:
      'You are not signed in: you cancelled, it took too long, or this device has no passkey for this service. Try again, or sign in another way.',
    other: 'The passkey could not be used. Reload the page and try again, or sign in another way.',
  },
} as const;

interface PasskeyFormProps {
  /** The act of the browser: create a passkey, or get a signature of one. */
  readonly act: keyof typeof PROBLEMS;
  /** Where the form goes. The script first requests the options from the path `/options` below. */
  readonly action: string;
  readonly party: RelyingParty;
  /** The fields and the button. */
  readonly children: ComponentChildren;
}

/** A form that is sent with the result of the browser's dialog for passkeys. The script shows it where there is one. */
export function PasskeyForm({ act, action, party, children }: PasskeyFormProps): VNode {
  const wrongAddress = `Passkeys work only at ${party.origin}. Open this page there.`;
  return (
    <form class="form" method="post" action={action} data-passkey={act} hidden>
      <input type="hidden" name="credential" autocomplete="off" />
      {children}
      <div role="alert">
        {Object.entries({ SecurityError: wrongAddress, ...PROBLEMS[act] }).map(([name, text]) => (
          <p key={name} class="notice tone-danger" data-problem={name} hidden>
            {text}
          </p>
        ))}
      </div>
    </form>
  );
}

/**
 * Returns the relying party of the passkeys of this service.
 *
 * @throws PageError 404 where the public URL has no host name
 */
export function requireRelyingParty({ state }: PageContext): RelyingParty {
  const party = relyingPartyOf(state.site.publicUrl());
  if (party !== undefined) return party;
  throw new PageError(
    404,
    'Passkeys are not available',
    'This service is reached by an IP address, for which browsers accept no passkeys. Sign in another way.',
  );
}

/**
 * Answers the script with the options for the browser's dialog, and gives the browser their challenge in a cookie.
 *
 * @param sessionId - the session that adds a passkey; null for a sign-in
 * @param makeOptions - makes the options for a challenge
 */
export async function answerOptions(
  ctx: PageContext,
  db: Knex,
  sessionId: number | null,
  makeOptions: (challenge: string) => object,
): Promise<void> {
  const challenge = await createChallenge(db, sessionId);
  setCookie(ctx, 'passkey', challenge, CHALLENGE_SECONDS);
  ctx.set('Cache-Control', 'no-store');
  ctx.body = makeOptions(challenge);
}

const parseAnswer = formParser({ credential: { schema: { minLength: 1 } } });

/**
 * Reads the browser's result, and spends its challenge.
 *
 * @param sessionId - as for {@link answerOptions}
 * @throws PasskeyRefused when the challenge is not valid for this browser
 */
export async function takeAnswer(
  ctx: PageContext,
  db: Knex,
  sessionId: number | null,
): Promise<{ readonly challenge: string; readonly answer: string }> {
  const { credential } = parseAnswer(ctx).values;
  const challenge = readCookie(ctx, 'passkey');
  setCookie(ctx, 'passkey', undefined);
  if (challenge === undefined || !(await spendChallenge(db, challenge, sessionId))) throw new PasskeyRefused('expired');
  return { challenge, answer: credential };
}
