import { readFileSync, statSync } from 'node:fs';
import { getSystemErrorMap } from 'node:util';
import { InvalidSetting, readClusterUrl } from './parsers.js';
import { SETTINGS, type Config } from './settings.js';

type AnySetting = (typeof SETTINGS)[keyof typeof SETTINGS];

type Environment = Readonly<Record<string, string | undefined>>;

/** Unusable settings. The message lists all of them. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** Added to the name of a secret setting: the name of the variable with the path of the file that has its text. */
const FILE_SUFFIX = '_FILE';

/**
 * Reads the settings from environment variables, and secrets also from the files that they name. An empty variable
 * counts as not set.
 *
 * @throws ConfigError that names every wrong setting, not only the first
 */
export function readConfig(environment: Environment): Config {
  const isSet = (setting: AnySetting): boolean => variablesOf(setting, environment).length > 0;
  const problems: string[] = [];
  const values = Object.entries(SETTINGS).map(([key, setting]) => {
    try {
      const text = readText(setting, environment);
      return [key, text === undefined ? setting.fallback : setting.parse(text)];
    } catch (error) {
      if (!(error instanceof InvalidSetting)) throw error;
      problems.push(`${setting.name} ${error.message}`);
      return [key, setting.fallback];
    }
  });
  const config = Object.fromEntries(values) as Config;
  if (config.databaseReadUrl !== undefined && !isSet(SETTINGS.databaseUrl)) {
    problems.push('DATABASE_READ_URL must be a replica of DATABASE_URL, which is not set');
  }
  if (config.redisSentinels !== undefined && !isSet(SETTINGS.redisUrl)) {
    problems.push('REDIS_SENTINELS requires REDIS_URL with the name of the master, such as redis://mymaster');
  }
  if (config.redisSentinels !== undefined && readClusterUrl(config.redisUrl ?? '') !== undefined) {
    problems.push('REDIS_SENTINELS cannot be combined with a Redis Cluster in REDIS_URL, which needs none');
  }
  if (isSet(SETTINGS.notifyUrl) && !isSet(SETTINGS.notifySecret)) {
    problems.push('NOTIFY_URL requires NOTIFY_SECRET, which signs the notices');
  }
  if (isSet(SETTINGS.notifySecret) && !isSet(SETTINGS.notifyUrl)) {
    problems.push('NOTIFY_SECRET has no effect without NOTIFY_URL');
  }
  problems.push(...missingForOidc(config, isSet));
  if (problems.length > 0) {
    throw new ConfigError(['These settings cannot be used:', ...problems.map((problem) => `  ${problem}`)].join('\n'));
  }
  return Object.freeze(config);
}

/** @returns the address of Redis for its client; undefined without Redis */
export function redisAddressOf({ redisUrl, redisSentinels, redisSentinelPassword }: Config) {
  if (redisUrl === undefined) return undefined;
  const cluster = readClusterUrl(redisUrl)?.map((node) => new URL(node).href);
  return { url: redisUrl, cluster, sentinels: redisSentinels, sentinelPassword: redisSentinelPassword };
}

/** @returns where to send notices, and the key of their signatures; undefined when they are off */
export function webhookOf({ notifyUrl: url, notifySecret: secret }: Config) {
  return url === undefined || secret === undefined ? undefined : { url, secret };
}

/** An identity provider requires all of its settings: with only some of them, no sign-in would work. */
function missingForOidc({ oidcSignUp }: Config, isSet: (setting: AnySetting) => boolean): string[] {
  const { oidcIssuer, oidcClientId, oidcClientSecret, publicUrl } = SETTINGS;
  const ofProvider = [oidcIssuer, oidcClientId, oidcClientSecret];
  if (!oidcSignUp && !ofProvider.some(isSet)) return [];
  return [...ofProvider, publicUrl]
    .filter((setting) => !isSet(setting))
    .map(({ name }) => `${name} must be set: sign-in by OpenID Connect requires it`);
}

/** @returns the variables that set a setting: its own and, for a secret, the variable that names a file */
function variablesOf({ name, isSecret }: AnySetting, environment: Environment): string[] {
  return [name, ...(isSecret ? [name + FILE_SUFFIX] : [])].filter((variable) => environment[variable]?.trim());
}

/**
 * @returns the text of a setting, undefined when it is not set
 * @throws InvalidSetting without the path, which might be the secret itself, set under the wrong name
 */
function readText(setting: AnySetting, environment: Environment): string | undefined {
  const [variable, other] = variablesOf(setting, environment);
  if (variable === undefined) return undefined;
  if (other !== undefined) throw new InvalidSetting(`must be set only once, and ${other} is set too`);
  const value = environment[variable]?.trim() ?? '';
  // Some readers of env files keep them, such as "docker run --env-file". A secret that has quotes can be in a file.
  if (/^(["'])(?:(?!\1)[^])*\1$/.test(value)) {
    throw new InvalidSetting(
      'must be set without quotes around the value, which not every reader of env files removes',
    );
  }
  if (variable === setting.name) return value;
  const text = readSecret(value, variable).trim();
  if (text === '') throw new InvalidSetting(`must not be empty in the file that ${variable} names`);
  return text;
}

function readSecret(path: string, variable: string): string {
  try {
    // A pipe would be waited for without a bound.
    if (statSync(path).isFile()) return readFileSync(path, 'utf8');
  } catch (error) {
    // Without the path, which the message has.
    const { code, errno = 0 } = error as NodeJS.ErrnoException;
    const reason = getSystemErrorMap().get(errno)?.join(': ') ?? code;
    throw new InvalidSetting(`cannot be read from the file that ${variable} names (${reason})`);
  }
  throw new InvalidSetting(`cannot be read: ${variable} names something other than a regular file`);
}
