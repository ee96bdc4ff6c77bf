import { parseRedisAddress, RedisAddressError } from './redis-address.js';

/** A setting of the service: an environment variable. */
interface Setting {
  readonly name: string;
  readonly description: string;
  /** What holds when it is not set, in words. */
  readonly default: string;
}

/** Every setting there is. The operating guide documents each. */
export const SETTINGS = [
  { name: 'HOST', default: '127.0.0.1', description: 'address to listen on; 0.0.0.0 for every IPv4 interface' },
  { name: 'PORT', default: '8080', description: 'port to listen on; 0 for any free one' },
  {
    name: 'DATABASE_URL',
    default: 'the embedded PostgreSQL',
    description: 'PostgreSQL to use, postgres://user:password@host:port/database',
  },
  {
    name: 'DATABASE_READ_URL',
    default: 'none',
    description: 'streaming replica of DATABASE_URL that feed, counts and title lookups read from',
  },
  { name: 'DATABASE_POOL_SIZE', default: '10', description: 'most database connections of one server process' },
  {
    name: 'REDIS_URL',
    default: 'none',
    description:
      'Redis that all server processes share for limits and cached keys: one server, redis://:password@host:port/0, ' +
      'or redis+sentinel:// or redis+cluster:// with several hosts; rediss for TLS',
  },
  {
    name: 'TRUST_PROXY',
    default: 'off',
    description: 'number of your own proxies in front, whose X-Forwarded-For tells the address of a client',
  },
  { name: 'WORKERS', default: '1', description: 'server processes on the one port; more than one need REDIS_URL' },
  {
    name: 'DRAIN_SECONDS',
    default: '5',
    description: 'how long SIGTERM leaves a balancer to find out before the server stops listening; 0 for none',
  },
  { name: 'DATA_DIR', default: '.data in the checkout', description: 'folder of the embedded PostgreSQL' },
  {
    name: 'METRICS_ADDRESS',
    default: '127.0.0.1:9464',
    description: 'address of /metrics for Prometheus, host:port; port 0 for any free one; off for none',
  },
  { name: 'LOG_LEVEL', default: 'info', description: 'trace, debug, info, warn, error, fatal or silent' },
] as const satisfies readonly Setting[];

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

export type LogLevel = (typeof LOG_LEVELS)[number];

/** The settings, validated. */
export interface Config {
  readonly host: string;
  readonly port: number;
  /** Undefined for the embedded PostgreSQL. May hold a password: never printed. */
  readonly databaseUrl: string | undefined;
  /** Undefined for none. May hold a password: never printed. */
  readonly databaseReadUrl: string | undefined;
  readonly databasePoolSize: number;
  /** Undefined for none. May hold a password: never printed. */
  readonly redisUrl: string | undefined;
  /** How many proxies stand in front of the service; 0 for none. */
  readonly trustedProxies: number;
  /** How many server processes share the port. */
  readonly workers: number;
  /** How long the service goes on serving after SIGTERM. */
  readonly drainSeconds: number;
  /** Undefined for the place that the embedded PostgreSQL chooses. */
  readonly dataDir: string | undefined;
  /** Undefined for none. */
  readonly metricsAddress: MetricsAddress | undefined;
  readonly logLevel: LogLevel;
}

/** Where metrics are served. */
interface MetricsAddress {
  readonly host: string;
  readonly port: number;
  /** Whether it was asked for; the default is a place that one can do without. */
  readonly isRequired: boolean;
}

const DEFAULT_METRICS_ADDRESS: MetricsAddress = { host: '127.0.0.1', port: 9464, isRequired: false };

/** Settings that cannot be used, all of them in one message. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads the settings from environment variables. An empty one counts as not set.
 *
 * @throws ConfigError that names every setting that is wrong, not only the first
 */
export function readConfig(environment: Environment): Config {
  const problems: string[] = [];

  function setting<T>(name: (typeof SETTINGS)[number]['name'], fallback: T, read: (text: string) => T | Complaint): T {
    const text = environment[name]?.trim();
    if (text === undefined || text === '') return fallback;
    const value = read(text);
    if (!(value instanceof Complaint)) return value;
    problems.push(`  ${name} ${value.text}`);
    return fallback;
  }

  const config: Config = {
    host: setting('HOST', '127.0.0.1', hostName),
    port: setting('PORT', 8080, wholeNumber(0, 65_535)),
    databaseUrl: setting<string | undefined>('DATABASE_URL', undefined, postgresUrl),
    databaseReadUrl: setting<string | undefined>('DATABASE_READ_URL', undefined, postgresUrl),
    databasePoolSize: setting('DATABASE_POOL_SIZE', 10, wholeNumber(2, 1000)),
    redisUrl: setting<string | undefined>('REDIS_URL', undefined, redisUrl),
    trustedProxies: setting('TRUST_PROXY', 0, proxies),
    workers: setting('WORKERS', 1, wholeNumber(1, 128)),
    drainSeconds: setting('DRAIN_SECONDS', 5, wholeNumber(0, 600)),
    dataDir: setting<string | undefined>('DATA_DIR', undefined, String),
    metricsAddress: setting<MetricsAddress | undefined>('METRICS_ADDRESS', DEFAULT_METRICS_ADDRESS, metricsAddress),
    logLevel: setting('LOG_LEVEL', 'info', logLevel),
  };
  if (config.databaseReadUrl !== undefined && config.databaseUrl === undefined) {
    problems.push('  DATABASE_READ_URL must be a replica of DATABASE_URL, which is not set');
  }
  if (config.workers > 1 && !environment.REDIS_URL?.trim()) {
    problems.push(
      '  WORKERS must be 1 without REDIS_URL: limits would be counted in each process, and allow that many times the plan',
    );
  }
  if (problems.length > 0) {
    throw new ConfigError(['These settings cannot be used:', ...problems].join('\n'));
  }
  return Object.freeze(config);
}

/** What is wrong with a value. It follows the setting's name, and repeats the value only where that is no secret. */
class Complaint {
  constructor(readonly text: string) {}
}

function hostName(text: string): string | Complaint {
  return /^[A-Za-z0-9.:_-]+$/.test(text)
    ? text
    : new Complaint(`must be an address or a host name such as 127.0.0.1, not ${JSON.stringify(text)}`);
}

function wholeNumber(least: number, most: number): (text: string) => number | Complaint {
  return (text) => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : NaN;
    return value >= least && value <= most
      ? value
      : new Complaint(`must be a whole number from ${String(least)} to ${String(most)}, not ${JSON.stringify(text)}`);
  };
}

function postgresUrl(text: string): string | Complaint {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url && /^postgres(?:ql)?:$/.test(url.protocol)
    ? text
    : new Complaint('must be a URL such as postgres://user:password@host:5432/database');
}

function redisUrl(text: string): string | Complaint {
  try {
    parseRedisAddress(text);
    return text;
  } catch (error) {
    if (error instanceof RedisAddressError) return new Complaint(error.message);
    throw error;
  }
}

function proxies(text: string): number | Complaint {
  if (text === 'off') return 0;
  return /^[1-9]$/.test(text)
    ? Number(text)
    : new Complaint(`must be off, or the number of your proxies, 1 to 9, not ${JSON.stringify(text)}`);
}

/** `host:port`, `[address]:port` for IPv6, `:port` for the default host, or `off`. */
function metricsAddress(text: string): MetricsAddress | undefined | Complaint {
  if (text === 'off') return undefined;
  const [, ipv6, host, digits] = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))?:(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits ?? NaN);
  return port <= 65_535
    ? { host: ipv6 ?? host ?? DEFAULT_METRICS_ADDRESS.host, port, isRequired: true }
    : new Complaint(`must be off, or host:port such as 127.0.0.1:9464 or [::1]:9464, not ${JSON.stringify(text)}`);
}

function logLevel(text: string): LogLevel | Complaint {
  return (
    LOG_LEVELS.find((level) => level === text) ??
    new Complaint(`must be one of ${LOG_LEVELS.join(', ')}, not ${JSON.stringify(text)}`)
  );
}
