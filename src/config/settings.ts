import {
  METRICS_ADDRESS,
  parseClientKey,
  parseContact,
  parseCredit,
  parseHost,
  parseIssuer,
  parseMetricsAddress,
  parseNotifySecret,
  parseNotifyUrl,
  parsePostgresUrl,
  parseProxies,
  parsePublicUrl,
  parseRedisUrl,
  parseSentinels,
  parseSigningKey,
  parseSwitch,
  parseWholeNumber,
  parseWord,
  type MetricsAddress,
} from './parsers.js';

/** A setting of the service: an environment variable and the parser of its text. */
interface Setting<Value> {
  readonly name: string;
  /** The value when the variable is not set. */
  readonly fallback: Value;
  /** @throws InvalidSetting */
  readonly parse: (text: string) => Value;
  readonly description: string;
  /** The default, in words. */
  readonly default: string;
  /** Whether the value is never printed, and can also be read from the file that `<name>_FILE` names. */
  readonly isSecret: boolean;
}

function setting<Value>(
  name: string,
  fallback: Value,
  parse: (text: string) => Value,
  description: string,
  inWords = String(fallback),
): Setting<Value> {
  return { name, fallback, parse, description, default: inWords, isSecret: false };
}

/** A setting without a default value. */
function optional<Value>(name: string, parse: (text: string) => Value, description: string, inWords = 'none') {
  return setting<Value | undefined>(name, undefined, parse, description, inWords);
}

/** A setting that is a password or may contain one. */
function secret<Value>(...parameters: Parameters<typeof optional<Value>>): Setting<Value | undefined> {
  return { ...optional(...parameters), isSecret: true };
}

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

type LogLevel = (typeof LOG_LEVELS)[number];

const LOG_FORMATS = ['auto', 'json'] as const;

type LogFormat = (typeof LOG_FORMATS)[number];

/** Every setting, by its name in {@link Config}. The operating guide documents each. */
// oxfmt-ignore
export const SETTINGS = {
  host: setting('HOST', '127.0.0.1', parseHost, 'address to listen on; 0.0.0.0 for every IPv4 interface'),
  port: setting('PORT', 8080, parseWholeNumber(0, 65_535), 'port to listen on; 0 for any free one'),
  /** Undefined for the embedded PostgreSQL. */
  databaseUrl: secret('DATABASE_URL', parsePostgresUrl,
    'PostgreSQL database, postgres://user:password@host:port/database', 'the embedded PostgreSQL'),
  databaseReadUrl: secret('DATABASE_READ_URL', parsePostgresUrl,
    'streaming replica of DATABASE_URL for the feed, counts and title lookups'),
  databasePoolSize: setting('DATABASE_POOL_SIZE', 10, parseWholeNumber(2, 1000),
    'maximum database connections of a server process'),
  redisUrl: secret('REDIS_URL', parseRedisUrl,
    'Redis that all server processes share for limits and cached keys, redis://:password@host:port/0, or ' +
    'redis+cluster://:password@host:port,host:port for a Redis Cluster; rediss for TLS'),
  redisSentinels: optional('REDIS_SENTINELS', parseSentinels,
    "Sentinels that name the master, host:26379,host:26379; the host in REDIS_URL is then the master's name"),
  redisSentinelPassword: secret('REDIS_SENTINEL_PASSWORD', String, 'password of the Sentinels, if they have one'),
  /** An origin, without a slash at its end. */
  publicUrl: optional('PUBLIC_URL', parsePublicUrl,
    'public https:// URL of the service, used in pages, documents and errors; http:// only on this machine', 'http://localhost:PORT'),
  oidcIssuer: optional('OIDC_ISSUER', parseIssuer,
    'OpenID Connect provider for developer sign-in; requires OIDC_CLIENT_ID, OIDC_CLIENT_SECRET and PUBLIC_URL'),
  oidcClientId: optional('OIDC_CLIENT_ID', String, 'client id of this service at the provider'),
  oidcClientSecret: secret('OIDC_CLIENT_SECRET', String, 'client secret of this service at the provider'),
  oidcSignUp: setting('OIDC_SIGN_UP', false, parseSwitch,
    'on: everybody who signs in at the provider can register; off: only identities that you link can sign in', 'off'),
  oidcName: optional('OIDC_NAME', parseCredit,
    'name of the provider on the sign-in button, such as Example ID', "the issuer's host"),
  /** The number of proxies in front of the service; 0 for none. */
  trustedProxies: setting('TRUST_PROXY', 0, parseProxies,
    'number of trusted proxies; sets which X-Forwarded-For entry counts', 'off'),
  /** Whether the server has web pages in addition to the API. */
  site: setting('SITE', true, parseSwitch, 'off to serve only the API, without web pages', 'on'),
  /** A `mailto:` or https URL, like the next one. */
  operatorContact: optional('OPERATOR_CONTACT', parseContact,
    'email address or https:// URL where developers reach you; shown on the pages and in the contract'),
  attribution: optional('ATTRIBUTION', parseCredit,
    'credit that developers must show next to your data, if you require it of them, such as Data: Example Library'),
  securityContact: optional('SECURITY_CONTACT', parseContact,
    'email address or https:// URL for reports of security problems; served in /.well-known/security.txt'),
  notifyUrl: secret('NOTIFY_URL', parseNotifyUrl,
    'https:// URL that receives notices for the operator; requires NOTIFY_SECRET; http:// only on this machine'),
  notifySecret: secret('NOTIFY_SECRET', parseNotifySecret,
    'secret that signs notices: whsec_ and 24 to 64 random bytes in base64'),
  /** Undefined for a server that serves no copies. */
  copiesDir: optional('COPIES_DIR', String,
    'folder of published copies, as catalog export --publish writes it, to serve at /copies/ to callers with a key'),
  copySigningKey: secret('COPY_SIGNING_KEY', parseSigningKey,
    'Ed25519 private key that signs published copies, PKCS #8 in PEM or base64'),
  /** Bound on all waiting of one request, in milliseconds. */
  requestTimeoutMs: setting('REQUEST_TIMEOUT_MS', 900, parseWholeNumber(100, 10_000),
    'milliseconds that a request may wait for PostgreSQL and Redis before it gets 503; each of them gets a share of it'),
  drainSeconds: setting('DRAIN_SECONDS', 5, parseWholeNumber(0, 600),
    'seconds to keep serving after SIGTERM; 0 stops at once'),
  /** Undefined for the default place of the embedded PostgreSQL. */
  dataDir: optional('DATA_DIR', String, 'data directory of the embedded PostgreSQL', '.data in the checkout'),
  metricsAddress: setting<MetricsAddress | undefined>('METRICS_ADDRESS', METRICS_ADDRESS, parseMetricsAddress,
    'address of /metrics for Prometheus, host:port; port 0 for any free one; off for no metrics', '127.0.0.1:9464'),
  /** Whether the address of the metrics also has the pages for the operator. */
  operatorPages: setting('OPERATOR_PAGES', true, parseSwitch,
    'off to serve only /metrics on METRICS_ADDRESS, without the operator pages', 'on'),
  logLevel: setting<LogLevel>('LOG_LEVEL', 'info', parseWord(LOG_LEVELS), 'minimum level to log: trace, debug, info, warn, error, fatal or silent'),
  logFormat: setting<LogFormat>('LOG_FORMAT', 'auto', parseWord(LOG_FORMATS), 'auto writes text to a terminal and JSON elsewhere; json always writes JSON'),
  clientKey: secret('CATALOG_API_KEY', parseClientKey,
    'API key of "catalog mirror"; the server does not use it'),
  mirrorDatabaseUrl: secret('MIRROR_DATABASE_URL', parsePostgresUrl,
    'database that "catalog mirror" writes, unless --into names it; the server does not use it'),
};

type Settings = typeof SETTINGS;

export type Config = {
  readonly [Key in keyof Settings]: Settings[Key] extends Setting<infer Value> ? Value : never;
};
