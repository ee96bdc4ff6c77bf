import { isProviderUp } from '../../accounts/check-provider.js';
import type { Config } from '../../config/settings.js';
import { CONSEQUENCES, type Dependency } from '../../platform/telemetry/health.js';
import { cached } from '../../site/delivery/cached.js';
import type { ComponentState, LastHour } from './last-hour.js';

/** A component that the service works with. */
export interface Component {
  readonly name: string;
  /** The setting that names it. */
  readonly setting: string;
  /** Undefined for a component that is not configured, or that no process has reported yet. */
  readonly current: ComponentState | undefined;
  readonly isConfigured: boolean;
  /** What its loss means, and what to do. */
  readonly consequence: string;
  readonly advice: string;
  /** The section of a guide with more about it. */
  readonly guide: string;
}

/** What to do about the loss of each component. The service itself reconnects to all of them. */
const ADVICE: Readonly<Record<Dependency, Pick<Component, 'name' | 'setting' | 'advice' | 'guide'>>> = {
  database: {
    name: 'PostgreSQL',
    setting: 'DATABASE_URL',
    advice: 'Bring the primary back, or fail over.',
    guide: 'operators/runbook#postgresql-is-down',
  },
  replica: {
    name: 'Read replica',
    setting: 'DATABASE_READ_URL',
    advice: 'Bring the replica back. Clients are not affected.',
    guide: 'operators/runbook#the-read-replica-is-down',
  },
  redis: {
    name: 'Redis',
    setting: 'REDIS_URL',
    advice: 'Check that Redis answers and is neither full nor read-only.',
    guide: 'operators/runbook#redis-is-down',
  },
  announcements: {
    name: 'Change notifications',
    setting: 'REDIS_URL',
    advice: 'Look for “announcements lost” in the log, which has the reason.',
    guide: 'operators/runbook#change-notifications-are-down',
  },
};

/** How long the state of the identity provider is kept, in milliseconds. */
const PROVIDER_LIFETIME_MS = 10_000;

/**
 * Makes a function that reads the state of every component. It never rejects. The processes report a loss of the database
 * only when a connection fails, so the caller says whether the database has answered it.
 */
export function componentReader(
  config: Config,
  lastHour: LastHour,
): (isDatabaseUp: boolean) => Promise<readonly Component[]> {
  const configured: Readonly<Record<Dependency, boolean>> = {
    database: true,
    replica: config.databaseReadUrl !== undefined,
    redis: config.redisUrl !== undefined,
    announcements: config.redisUrl !== undefined,
  };
  const { oidcIssuer } = config;
  const readProvider = oidcIssuer === undefined ? undefined : providerReader(oidcIssuer);
  return async (isDatabaseUp) => [
    ...(Object.keys(ADVICE) as Dependency[]).map((dependency) => ({
      ...ADVICE[dependency],
      consequence: CONSEQUENCES[dependency],
      isConfigured: configured[dependency],
      current:
        dependency === 'database' && !isDatabaseUp
          ? lostSince(lastHour.components.get(dependency))
          : lastHour.components.get(dependency),
    })),
    {
      name: 'Identity provider',
      setting: 'OIDC_ISSUER',
      consequence: 'Nobody can sign in to the developer settings through it. Keys, sessions and passkeys keep working.',
      advice: 'Check the provider. Until it is back, create sign-in links.',
      guide: 'operators/sign-in#when-the-provider-is-down',
      isConfigured: readProvider !== undefined,
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
  return cached(async () => {
    const state = (await isProviderUp(issuer)) ? 'up' : 'lost';
    if (known?.state !== state) known = { state, since: Date.now() };
    return known;
  }, PROVIDER_LIFETIME_MS);
}
