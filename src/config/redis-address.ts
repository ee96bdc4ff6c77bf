import { isIPv6 } from 'node:net';
import { InvalidSetting } from './parsers.js';

export interface RedisNode {
  readonly host: string;
  readonly port: number;
}

/** Our credentials for a server; both undefined when it asks for none. */
export interface RedisCredentials {
  readonly username: string | undefined;
  readonly password: string | undefined;
}

interface Deployment {
  /** The server, or the nodes that know where it is. At least one. */
  readonly nodes: readonly RedisNode[];
  /** For the servers that hold the data. */
  readonly credentials: RedisCredentials;
  /** For all connections, with verified certificates. */
  readonly tls: boolean;
}

export interface RedisServerAddress extends Deployment {
  readonly kind: 'server';
  readonly database: number;
}

/** A master with its replicas, watched by Sentinels, which are the nodes. */
export interface RedisSentinelAddress extends Deployment {
  readonly kind: 'sentinel';
  readonly masterName: string;
  readonly database: number;
  readonly sentinelCredentials: RedisCredentials;
}

/** A Redis Cluster; the nodes are some of its nodes. */
export interface RedisClusterAddress extends Deployment {
  readonly kind: 'cluster';
}

export type RedisAddress = RedisServerAddress | RedisSentinelAddress | RedisClusterAddress;

const REDIS_PORT = 6379;
const SENTINEL_PORT = 26379;
const HIGHEST_PORT = 65_535;

const EXAMPLES =
  'redis://:password@host:6379/0, redis+sentinel://:password@host1:26379,host2:26379/mymaster or ' +
  'redis+cluster://:password@host1:7000,host2:7000; rediss for TLS';

/** Scheme, kind, credentials up to the last @ (often not encoded), hosts, path, parameters, fragment. */
const FORM =
  /^redis(s)?(?:[+-](sentinel|cluster))?:\/\/(?:([^/?#]*)@)?([^/?#@]*)(?:\/([^?#]*))?(?:\?([^#]*))?(?:#(.*))?$/i;

/**
 * Parses an address. There is no standard beyond redis:// and rediss://. For Sentinel and Cluster it accepts the
 * notations of the Python clients and of Lettuce. They are `redis+sentinel://host,host/mymaster/0` and
 * `redis+cluster://host,host`; `redis-sentinel://host,host/0#mymaster` and `?sentinelMasterId=mymaster`. With `rediss`
 * each uses TLS.
 *
 * @throws InvalidSetting
 */
export function parseRedisAddress(text: string): RedisAddress {
  const parts = FORM.exec(text);
  if (parts === null) throw new InvalidSetting(`must be a URL such as ${EXAMPLES}`);
  const [, s, kind = 'server', userInfo, hosts = '', path = '', query, fragment] = parts;
  const parameters = new URLSearchParams(query);
  const common = { credentials: readUserInfo(userInfo), tls: s !== undefined };
  switch (kind.toLowerCase()) {
    case 'sentinel':
      return {
        kind: 'sentinel',
        ...common,
        nodes: readNodes(hosts, SENTINEL_PORT),
        ...readMaster(path, parameters, fragment),
        sentinelCredentials: {
          username: parameters.get('sentinel_username') ?? undefined,
          password: parameters.get('sentinel_password') ?? undefined,
        },
      };
    case 'cluster':
      refuseMore(parameters, fragment);
      if (readDatabase(path) !== 0) {
        throw new InvalidSetting('must be without a database number: a Redis Cluster has the database 0 alone');
      }
      return { kind: 'cluster', ...common, nodes: readNodes(hosts, REDIS_PORT) };
    default: {
      refuseMore(parameters, fragment);
      const nodes = readNodes(hosts, REDIS_PORT);
      if (nodes.length > 1) {
        throw new InvalidSetting('must be redis+sentinel://… or redis+cluster://… where it names several hosts');
      }
      return { kind: 'server', ...common, nodes, database: readDatabase(path) };
    }
  }
}

function readUserInfo(userInfo: string | undefined): RedisCredentials {
  if (userInfo === undefined || userInfo === '') return { username: undefined, password: undefined };
  const colon = userInfo.indexOf(':');
  const username = decode(colon < 0 ? userInfo : userInfo.slice(0, colon));
  // A password without a user belongs to the default user.
  return { username: username || undefined, password: colon < 0 ? '' : decode(userInfo.slice(colon + 1)) };
}

function readNodes(hosts: string, defaultPort: number): readonly RedisNode[] {
  return hosts.split(',').map((text) => readNode(text, defaultPort));
}

function readNode(text: string, defaultPort: number): RedisNode {
  const [, address, name, port] = /^(?:\[([^\]]*)\]|([\w.-]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const host = address !== undefined && isIPv6(address) ? address : name;
  const number = port === undefined ? defaultPort : Number(port);
  if (host === undefined || number < 1 || number > HIGHEST_PORT) {
    throw new InvalidSetting(
      'must be a URL whose hosts are names, IPv4 or [IPv6] addresses, each with a port from 1 to 65535 or none; ' +
        'in a password / ? # % are written %2F %3F %23 %25',
    );
  }
  return { host, port: number };
}

function readDatabase(text: string): number {
  if (text === '') return 0;
  if (!/^\d{1,5}$/.test(text)) {
    throw new InvalidSetting('must be a URL whose path is nothing but the number of a database');
  }
  return Number(text);
}

/** Unless it stands elsewhere, the name is the first part of the path, before the database. */
function readMaster(
  path: string,
  parameters: URLSearchParams,
  fragment: string | undefined,
): { masterName: string; database: number } {
  const known = ['sentinelMasterId', 'sentinel_username', 'sentinel_password'];
  if ([...parameters.keys()].some((name) => !known.includes(name))) {
    throw new InvalidSetting(`must be a URL with no other parameters than ${known.join(', ')}`);
  }
  const elsewhere = parameters.get('sentinelMasterId') ?? (fragment === undefined ? undefined : decode(fragment));
  const [first = '', ...rest] = path.split('/');
  const masterName = elsewhere ?? decode(first);
  if (masterName === '' || (elsewhere === undefined && /^\d+$/.test(masterName))) {
    throw new InvalidSetting(
      'must be a URL that names the master that the Sentinels watch, redis+sentinel://host:26379/mymaster',
    );
  }
  return { masterName, database: readDatabase(elsewhere === undefined ? rest.join('/') : path) };
}

function refuseMore(parameters: URLSearchParams, fragment: string | undefined): void {
  if (parameters.size > 0 || fragment !== undefined) {
    throw new InvalidSetting('must be a URL without parameters; in a password ? # are written %3F %23');
  }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new InvalidSetting('must be a URL in which % is written %25 where it begins no encoded character');
  }
}
