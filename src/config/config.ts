import { InvalidSetting } from './parsers.js';
import { SETTINGS, type Config } from './settings.js';

/** Unusable settings. The message lists all of them. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/**
 * Reads the settings from environment variables. An empty variable counts as not set.
 *
 * @throws ConfigError that names every wrong setting, not only the first
 */
export function readConfig(environment: Readonly<Record<string, string | undefined>>): Config {
  const textOf = (name: string): string => environment[name]?.trim() ?? '';
  const problems: string[] = [];
  const values = Object.entries(SETTINGS).map(([key, { name, fallback, parse }]) => {
    const text = textOf(name);
    if (text === '') return [key, fallback];
    try {
      return [key, parse(text)];
    } catch (error) {
      if (!(error instanceof InvalidSetting)) throw error;
      problems.push(`${name} ${error.message}`);
      return [key, fallback];
    }
  });
  const config = Object.fromEntries(values) as Config;
  if (config.databaseReadUrl !== undefined && config.databaseUrl === undefined) {
    problems.push('DATABASE_READ_URL must be a replica of DATABASE_URL, which is not set');
  }
  if (config.workers > 1 && textOf('REDIS_URL') === '') {
    problems.push(
      'WORKERS must be 1 without REDIS_URL: each process would enforce the limits on its own, allowing a multiple of the plan',
    );
  }
  if (config.redisSentinels !== undefined && textOf('REDIS_URL') === '') {
    problems.push('REDIS_SENTINELS requires REDIS_URL with the name of the master, such as redis://mymaster');
  }
  problems.push(...missingForOidc(textOf));
  if (problems.length > 0) {
    throw new ConfigError(['These settings cannot be used:', ...problems.map((problem) => `  ${problem}`)].join('\n'));
  }
  return Object.freeze(config);
}

/** @returns the address of Redis for its client; undefined without Redis */
export function redisAddressOf({ redisUrl, redisSentinels, redisSentinelPassword }: Config) {
  if (redisUrl === undefined) return undefined;
  return { url: redisUrl, sentinels: redisSentinels, sentinelPassword: redisSentinelPassword };
}

/** An identity provider requires all of its settings: with only some of them, nobody could sign in. */
function missingForOidc(textOf: (name: string) => string): string[] {
  const { oidcIssuer, oidcClientId, oidcClientSecret, oidcSignUp, publicUrl } = SETTINGS;
  const ofProvider = [oidcIssuer, oidcClientId, oidcClientSecret].map(({ name }) => name);
  const isWanted = ofProvider.some((name) => textOf(name) !== '') || textOf(oidcSignUp.name) === 'on';
  if (!isWanted) return [];
  return [...ofProvider, publicUrl.name]
    .filter((name) => textOf(name) === '')
    .map((name) => `${name} must be set: sign-in by OpenID Connect requires it`);
}
