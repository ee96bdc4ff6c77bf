import type { Logger } from 'pino';
import { OidcProvider } from '../accounts/oidc-provider.js';
import { FailedAttempts, type FailurePolicy } from '../limits/failed-attempts.js';
import type { Config } from '../config/settings.js';
import type { SteadyClock } from '../platform/time/steady-clock.js';
import type { RedisLink } from '../platform/redis/link.js';
import type { SiteOptions } from '../pages/parts/context.js';
import { OIDC_CALLBACK } from '../pages/settings/sign-in/oidc.js';

/** Failed sign-ins from one address in a minute. Links cannot be guessed: they have 256 random bits. */
const SIGN_IN_POLICY: FailurePolicy = { limit: 10, windowSeconds: 60 };

/** Creates the parts of sign-in. The identity provider, which may be down, is not contacted. */
export function createSignIn(
  { oidcIssuer, oidcClientId, oidcClientSecret, oidcSignUp, publicUrl }: Config,
  redis: RedisLink | undefined,
  log: Logger,
  clock: SteadyClock,
): Pick<SiteOptions, 'failedSignIns' | 'signInBy'> {
  const failedSignIns = new FailedAttempts(redis, SIGN_IN_POLICY, 'sign-in-failures');
  // The settings of a provider are set together or not at all.
  if (
    oidcIssuer === undefined ||
    oidcClientId === undefined ||
    oidcClientSecret === undefined ||
    publicUrl === undefined
  ) {
    return { failedSignIns, signInBy: undefined };
  }
  const provider = new OidcProvider(
    {
      issuer: oidcIssuer,
      clientId: oidcClientId,
      clientSecret: oidcClientSecret,
      redirectUri: publicUrl + OIDC_CALLBACK,
    },
    (message) => log.warn(message),
    clock,
  );
  return { failedSignIns, signInBy: { provider, signUp: oidcSignUp } };
}
