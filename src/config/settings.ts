import { parseRedisAddress, type RedisAddress } from './redis-address.js';
import {
  parseHost,
  parseIssuer,
  parseLogLevel,
  parseMetricsAddress,
  parsePostgresUrl,
  parseProxies,
  parsePublicUrl,
  parseSwitch,
  parseWholeNumber,
  type LogLevel,
  type MetricsAddress,
} from './parsers.js';

/** A setting of the service: an environment variable and the parser of its text. */
interface Setting<Value> {
  /** Name of the environment variable. */
  readonly name: string;
  /** The default, in words. */
  readonly default: string;
  readonly description: string;
  /** The value when the variable is not set. */
  readonly fallback: Value;
  /** @throws InvalidSetting */
  readonly parse: (text: string) => Value;
}

const METRICS_ADDRESS: MetricsAddress = { host: '127.0.0.1', port: 9464, isRequired: false };

/** Every setting, by its name in {@link Config}. The operating guide documents each. */
export const SETTINGS = {
  host: setting({
    name: 'HOST',
    default: '127.0.0.1',
    fallback: '127.0.0.1',
    parse: parseHost,
    description: 'address to listen on; 0.0.0.0 for every IPv4 interface',
  }),
  port: setting({
    name: 'PORT',
    default: '8080',
    fallback: 8080,
    parse: parseWholeNumber(0, 65_535),
    description: 'port to listen on; 0 for any free one',
  }),
  /** Undefined for the embedded PostgreSQL. It may contain a password and is never printed. */
  databaseUrl: setting<string | undefined>({
    name: 'DATABASE_URL',
    default: 'the embedded PostgreSQL',
    fallback: undefined,
    parse: parsePostgresUrl,
    description: 'PostgreSQL to use, postgres://user:password@host:port/database',
  }),
  /** It may contain a password and is never printed. */
  databaseReadUrl: setting<string | undefined>({
    name: 'DATABASE_READ_URL',
    default: 'none',
    fallback: undefined,
    parse: parsePostgresUrl,
    description: 'streaming replica of DATABASE_URL that feed, counts and title lookups read from',
  }),
  databasePoolSize: setting({
    name: 'DATABASE_POOL_SIZE',
    default: '10',
    fallback: 10,
    parse: parseWholeNumber(2, 1000),
    description: 'most database connections of one server process',
  }),
  /** It may contain a password and is never printed. */
  redis: setting<RedisAddress | undefined>({
    name: 'REDIS_URL',
    default: 'none',
    fallback: undefined,
    parse: parseRedisAddress,
    description:
      'Redis that all server processes share for limits and cached keys: one server, redis://:password@host:port/0, ' +
      'or redis+sentinel:// or redis+cluster:// with several hosts; rediss for TLS',
  }),
  /** An origin, without a slash at its end. */
  publicUrl: setting<string | undefined>({
    name: 'PUBLIC_URL',
    default: 'http://HOST:PORT',
    fallback: undefined,
    parse: parsePublicUrl,
    description: 'where people open the pages, https://host; http only for this machine',
  }),
  oidcIssuer: setting<string | undefined>({
    name: 'OIDC_ISSUER',
    default: 'none',
    fallback: undefined,
    parse: parseIssuer,
    description: 'OpenID Connect provider by which developers sign in; needs the next two and PUBLIC_URL',
  }),
  oidcClientId: setting<string | undefined>({
    name: 'OIDC_CLIENT_ID',
    default: 'none',
    fallback: undefined,
    parse: String,
    description: 'id of this service at that provider',
  }),
  /** Never printed. */
  oidcClientSecret: setting<string | undefined>({
    name: 'OIDC_CLIENT_SECRET',
    default: 'none',
    fallback: undefined,
    parse: String,
    description: 'its secret there',
  }),
  oidcSignUp: setting({
    name: 'OIDC_SIGN_UP',
    default: 'off',
    fallback: false,
    parse: parseSwitch,
    description: 'on: whoever signs in there becomes a developer; off: only those whom you link',
  }),
  /** How many proxies stand in front of the service; 0 for none. */
  trustedProxies: setting({
    name: 'TRUST_PROXY',
    default: 'off',
    fallback: 0,
    parse: parseProxies,
    description: 'number of your own proxies in front, whose X-Forwarded-For tells the address of a client',
  }),
  /** Whether the server has pages for people beside the API. */
  site: setting({
    name: 'SITE',
    default: 'on',
    fallback: true,
    parse: parseSwitch,
    description: 'on, or off for a server without pages for people',
  }),
  workers: setting({
    name: 'WORKERS',
    default: '1',
    fallback: 1,
    parse: parseWholeNumber(1, 128),
    description: 'server processes on the one port; more than one need REDIS_URL',
  }),
  drainSeconds: setting({
    name: 'DRAIN_SECONDS',
    default: '5',
    fallback: 5,
    parse: parseWholeNumber(0, 600),
    description: 'how long SIGTERM leaves a balancer to find out before the server stops listening; 0 for none',
  }),
  /** Undefined for the default place of the embedded PostgreSQL. */
  dataDir: setting<string | undefined>({
    name: 'DATA_DIR',
    default: '.data in the checkout',
    fallback: undefined,
    parse: String,
    description: 'folder of the embedded PostgreSQL',
  }),
  metricsAddress: setting<MetricsAddress | undefined>({
    name: 'METRICS_ADDRESS',
    default: '127.0.0.1:9464',
    fallback: METRICS_ADDRESS,
    parse: parseMetricsAddress(METRICS_ADDRESS.host),
    description: 'address of /metrics for Prometheus, host:port; port 0 for any free one; off for none',
  }),
  logLevel: setting<LogLevel>({
    name: 'LOG_LEVEL',
    default: 'info',
    fallback: 'info',
    parse: parseLogLevel,
    description: 'trace, debug, info, warn, error, fatal or silent',
  }),
};

type Settings = typeof SETTINGS;

/** The value of each setting. */
export type Config = {
  readonly [Key in keyof Settings]: Settings[Key] extends Setting<infer Value> ? Value : never;
};

/** Infers the type of a setting's value. */
function setting<Value>(line: Setting<Value>): Setting<Value> {
  return line;
}
