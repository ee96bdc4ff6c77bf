import { freePort } from '../../support/programs/free-port.js';
import { startIdentityProvider, type IdentityProvider } from '../../support/programs/identity-provider.js';
import { startService, type TestService } from '../../support/service.js';

/** Where the provider sends the browser back to. */
export const CALLBACK = '/sign-in/oidc/callback';

/** A service that signs developers in by a provider. Stop both. @param signUp - whether an unknown identity may sign up */
export async function startWithProvider(
  signUp: 'on' | 'off',
): Promise<{ service: TestService; provider: IdentityProvider }> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const provider = await startIdentityProvider(url + CALLBACK);
  const service = await startService({
    trustedProxies: 1,
    settings: {
      PORT: String(port),
      PUBLIC_URL: url,
      OIDC_ISSUER: provider.issuer,
      OIDC_CLIENT_ID: provider.clientId,
      OIDC_CLIENT_SECRET: provider.clientSecret,
      OIDC_SIGN_UP: signUp,
    },
  });
  return { service, provider };
}
