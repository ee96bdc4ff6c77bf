import { findDeveloperByPasskey } from '../../../accounts/passkeys.js';
import { PasskeyRefused, requestOptions, type PasskeyRefusal } from '../../../accounts/relying-party.js';
import { boundConcurrency } from '../../../http/request/concurrency.js';
import type { PageContext, PageRouter, SiteParts } from '../../parts/context.js';
import { answerOptions, takeAnswer, requireRelyingParty } from './passkey-form.js';
import { returnTo } from './return-to.js';
import { countFailure, signIn } from './sign-in-link.js';

export const PASSKEY_SIGN_IN = '/sign-in/passkey';

/** Why a sign-in failed. None of these depends on which developers there are. */
const FAILURES: Readonly<Partial<Record<PasskeyRefusal, string>>> = {
  expired: 'The sign-in took too long, or was started in another tab or browser. Try again.',
  unknown:
    'This passkey was removed or belongs to another service. Sign in another way, and delete the passkey from your device or password manager.',
};

/** Anybody may ask for a challenge, each of which is a row for ten minutes. */
const OPTIONS_LIMITS = { running: 3, waiting: 50, perAddress: 10, perWindow: 20 } as const;

const UNVERIFIED = 'Your passkey could not be verified. Try again, or sign in another way.';

/**
 * Adds sign-in by passkey. Nobody types a name: the browser offers the passkeys that it has for this service.
 *
 * @param showFailure - answers with the sign-in page and why the sign-in failed
 */
export function addPasskeySignIn(
  router: PageRouter,
  parts: SiteParts,
  showFailure: (ctx: PageContext, failure: string) => Promise<void>,
): void {
  const { db } = parts;
  const bounded = boundConcurrency(OPTIONS_LIMITS, parts.trustedProxies);
  router.post(`${PASSKEY_SIGN_IN}/options`, async (ctx) => {
    const party = requireRelyingParty(ctx);
    await bounded(ctx, () => answerOptions(ctx, db, null, (challenge) => requestOptions(party, challenge)));
  });

  router.post(PASSKEY_SIGN_IN, async (ctx) => {
    const party = requireRelyingParty(ctx);
    try {
      const { challenge, answer } = await takeAnswer(ctx, db, null);
      await signIn(ctx, parts, 'passkey', (transaction) =>
        findDeveloperByPasskey(transaction, party, challenge, answer),
      );
    } catch (error) {
      if (!(error instanceof PasskeyRefused)) throw error;
      await countFailure(ctx, parts);
      await showFailure(ctx, FAILURES[error.reason] ?? UNVERIFIED);
      return;
    }
    returnTo(ctx);
  });
}
