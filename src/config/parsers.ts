import { InvalidSetting } from './invalid-setting.js';

// Each takes the text of an environment variable, returns its value, and throws InvalidSetting where it has none.

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

export type LogLevel = (typeof LOG_LEVELS)[number];

/** Where metrics are served. */
export interface MetricsAddress {
  readonly host: string;
  readonly port: number;
  /** Whether the operator named it: a server that cannot listen on the default address goes on without metrics. */
  readonly isRequired: boolean;
}

export function parseHost(text: string): string {
  if (/^[A-Za-z0-9.:_-]+$/.test(text)) return text;
  throw new InvalidSetting(`must be an address or a host name such as 127.0.0.1, not ${JSON.stringify(text)}`);
}

/** @returns a parser of whole numbers from `least` to `most` */
export function parseWholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : NaN;
    if (value >= least && value <= most) return value;
    throw new InvalidSetting(
      `must be a whole number from ${String(least)} to ${String(most)}, not ${JSON.stringify(text)}`,
    );
  };
}

/** @returns the text itself: the driver has its own parser of URLs */
export function parsePostgresUrl(text: string): string {
  if (URL.canParse(text) && /^postgres(?:ql)?:$/.test(new URL(text).protocol)) return text;
  throw new InvalidSetting('must be a URL such as postgres://user:password@host:5432/database');
}

/** @returns the number of proxies; 0 for `off` */
export function parseProxies(text: string): number {
  if (text === 'off') return 0;
  if (/^[1-9]$/.test(text)) return Number(text);
  throw new InvalidSetting(`must be off, or the number of your proxies, 1 to 9, not ${JSON.stringify(text)}`);
}

/** @returns a parser of `host:port`, `[address]:port` for IPv6, `:port` for the default host, or `off` for none */
export function parseMetricsAddress(defaultHost: string): (text: string) => MetricsAddress | undefined {
  return (text) => {
    if (text === 'off') return undefined;
    const [, ipv6, host, digits] = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))?:(\d{1,5})$/.exec(text) ?? [];
    const port = Number(digits ?? NaN);
    if (port <= 65_535) return { host: ipv6 ?? host ?? defaultHost, port, isRequired: true };
    throw new InvalidSetting(
      `must be off, or host:port such as 127.0.0.1:9464 or [::1]:9464, not ${JSON.stringify(text)}`,
    );
  };
}

export function parseLogLevel(text: string): LogLevel {
  const level = LOG_LEVELS.find((known) => known === text);
  if (level !== undefined) return level;
  throw new InvalidSetting(`must be one of ${LOG_LEVELS.join(', ')}, not ${JSON.stringify(text)}`);
}
