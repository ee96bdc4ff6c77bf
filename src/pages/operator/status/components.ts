import { isProviderUp } from '../../../accounts/check-provider.js';
import type { Config } from '../../../config/settings.js';
import type { ComponentState, Health, Outage } from '../../../platform/telemetry/health.js';

/** A component that the service works with. */
export interface Component extends Omit<Outage, 'forCallers'> {
  readonly current: ComponentState;
}

/** What follows from the loss of the identity provider. */
const PROVIDER_OUTAGE = {
  name: 'Identity provider',
  consequence: 'Nobody can sign in to the developer settings through it. Keys, sessions and passkeys keep working.',
  advice: 'Check the provider. Until it is back, create sign-in links.',
  guide: 'sign-in#when-the-provider-is-down',
};

/**
 * Makes a function that reads the state of every component that is configured. It never rejects. The loss of the
 * database is detected only when a connection fails, so the caller passes whether its own query has succeeded.
 */
export function componentReader(
  { oidcIssuer }: Config,
  health: Health,
): (isDatabaseUp: boolean) => Promise<readonly Component[]> {
  const readProvider = oidcIssuer === undefined ? undefined : providerReader(oidcIssuer);
  return async (isDatabaseUp) => {
    const components: Component[] = Array.from(health.components, ([dependency, reported]) => ({
      ...health.outageOf(dependency),
      current: dependency === 'database' && !isDatabaseUp ? lostSince(reported) : reported,
    }));
    const provider = await readProvider?.();
    return provider === undefined ? components : [...components, { ...PROVIDER_OUTAGE, current: provider }];
  };
}

/** @returns the state of a component that has just failed */
function lostSince(reported: ComponentState): ComponentState {
  return reported.state === 'up' ? { ...reported, state: 'lost', since: Date.now() } : reported;
}

function providerReader(issuer: string): () => Promise<ComponentState> {
  let known: ComponentState | undefined;
  return async () => {
    const state = (await isProviderUp(issuer)) ? 'up' : 'lost';
    if (known?.state !== state) known = { state, since: Date.now(), losses: [] };
    return known;
  };
}
