import { isProviderUp } from '../../../accounts/check-provider.js';
import type { Config } from '../../../config/settings.js';
import type { ComponentState, Dependency, Health, Outage } from '../../../platform/telemetry/health.js';

/** A component that the service works with. */
export interface Component extends Omit<Outage, 'forCallers'> {
  /** The setting that names it. */
  readonly setting: string;
  /** Undefined for a component that is not configured. */
  readonly current: ComponentState | undefined;
}

const SETTING_OF: Readonly<Record<Dependency, string>> = {
  database: 'DATABASE_URL',
  replica: 'DATABASE_READ_URL',
  redis: 'REDIS_URL',
  announcements: 'REDIS_URL',
};

/**
 * Makes a function that reads the state of every component. It never rejects. The service notices the loss of the database
 * only when a connection fails, so the caller says whether the database has answered it.
 */
export function componentReader(
  { oidcIssuer }: Config,
  health: Health,
): (isDatabaseUp: boolean) => Promise<readonly Component[]> {
  const readProvider = oidcIssuer === undefined ? undefined : providerReader(oidcIssuer);
  return async (isDatabaseUp) => [
    ...(Object.keys(health.outages) as Dependency[]).map((dependency) => {
      const reported = health.components.get(dependency);
      return {
        ...health.outages[dependency],
        setting: SETTING_OF[dependency],
        current: dependency === 'database' && !isDatabaseUp ? lostSince(reported) : reported,
      };
    }),
    {
      name: 'Identity provider',
      setting: 'OIDC_ISSUER',
      consequence: 'Nobody can sign in to the developer settings through it. Keys, sessions and passkeys keep working.',
      advice: 'Check the provider. Until it is back, create sign-in links.',
      guide: 'sign-in#when-the-provider-is-down',
      current: await readProvider?.(),
    },
  ];
}

/** @returns the state of a component that has just failed */
function lostSince(reported: ComponentState | undefined): ComponentState {
  return reported?.state === 'lost' ? reported : { state: 'lost', since: Date.now() };
}

function providerReader(issuer: string): () => Promise<ComponentState> {
  let known: ComponentState | undefined;
  return async () => {
    const state = (await isProviderUp(issuer)) ? 'up' : 'lost';
    if (known?.state !== state) known = { state, since: Date.now() };
    return known;
  };
}
