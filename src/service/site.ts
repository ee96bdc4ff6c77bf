// The pages for people, as one module: a server without them does not load it.

import type { Logger } from 'pino';
import { OidcProvider } from '../accounts/oidc-provider.js';
import type { Config } from '../config/settings.js';
import type { Middleware } from '../http/request/context.js';
import { FailedAttempts, type FailurePolicy } from '../limits/failed-attempts.js';
import type { SiteOptions, SiteParts } from '../pages/parts/context.js';
import { readStaticFiles } from '../pages/parts/web/static-files.js';
import { readGuides } from '../pages/public/guides/guides.js';
import type { Contract } from '../pages/public/reference/contract.js';
import { OIDC_CALLBACK } from '../pages/settings/sign-in/oidc.js';
import { createSite } from '../pages/site.js';
import type { RedisLink } from '../platform/redis/link.js';

/** Failed sign-ins from one address in a minute. Links cannot be guessed: they have 256 random bits. */
const SIGN_IN_POLICY: FailurePolicy = { limit: 10, windowSeconds: 60 };

export { loadWebAuthn } from '../accounts/relying-party.js';

interface SiteNeeds extends Omit<SiteParts, 'site'>, Pick<SiteOptions, 'publicUrl'> {
  readonly config: Config;
  /** How this program was started. */
  readonly command: string;
  readonly log: Logger;
  /** The folder of this package's package.json. */
  readonly packageRoot: string;
  /** The contract as JSON. */
  readonly contract: string;
  readonly redis: RedisLink | undefined;
}

/** Opens the pages for people. */
export async function openSite({ contract, ...needs }: SiteNeeds): Promise<Middleware> {
  const { config, command, packageRoot, publicUrl } = needs;
  return createSite({
    ...needs,
    contract: JSON.parse(contract) as Contract,
    site: {
      files: await readStaticFiles(packageRoot),
      guides: await readGuides(packageRoot),
      publicUrl,
      docs: () => '/docs',
      operatorContact: config.operatorContact,
      command,
      attribution: config.attribution,
      ...createSignIn(needs),
    },
  });
}

/** Creates the parts of sign-in. The identity provider, which may be down, is not contacted. */
function createSignIn({
  config,
  redis,
  log,
}: Omit<SiteNeeds, 'contract'>): Pick<SiteOptions, 'failedSignIns' | 'signInBy'> {
  const { oidcIssuer, oidcClientId, oidcClientSecret, oidcName, oidcSignUp, publicUrl } = config;
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
  );
  return { failedSignIns, signInBy: { provider, name: oidcName ?? new URL(oidcIssuer).host, signUp: oidcSignUp } };
}
